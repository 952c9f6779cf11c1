package memory

import "github.com/memory-service/memory-service/clients/go/internal/memoryv1"

func (o *AddOperation) convert(where string) (*memoryv1.WriteOperation, error) {
	item, err := itemFrom(o.Item, where+".add.item")
	if err != nil {
		return nil, err
	}
	choice, err := onDuplicateFrom(o.OnDuplicate, where+".add.on_duplicate")
	if err != nil {
		return nil, err
	}
	add := &memoryv1.AddOperation{Item: item, OnDuplicate: choice}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_Add{Add: add}}, nil
}

func (o *UpdateOperation) convert(where string) (*memoryv1.WriteOperation, error) {
	item, err := itemFrom(o.Item, where+".update.item")
	if err != nil {
		return nil, err
	}
	update := &memoryv1.UpdateOperation{
		Item: item, UpdateMask: maskOf(o.Fields), ExpectedRevision: o.ExpectedRevision,
	}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_Update{Update: update}}, nil
}

func (o *DeleteOperation) convert(string) (*memoryv1.WriteOperation, error) {
	removal := &memoryv1.DeleteOperation{
		Id:               string(o.ID),
		ExpectedRevision: o.ExpectedRevision,
		AllowMissing:     o.AllowMissing,
		KeepDerived:      o.KeepDerived,
	}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_Delete{Delete: removal}}, nil
}

func (o *DeleteWhereOperation) convert(where string) (*memoryv1.WriteOperation, error) {
	kinds, err := kindsFrom(o.Kinds, where+".delete_where.kinds")
	if err != nil {
		return nil, err
	}
	removal := &memoryv1.DeleteWhereOperation{
		SessionId:   o.SessionID,
		Labels:      o.Labels,
		Kinds:       kinds,
		Filter:      o.Filter,
		StartTime:   timeFrom(o.StartTime),
		EndTime:     timeFrom(o.EndTime),
		KeepDerived: o.KeepDerived,
	}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_DeleteWhere{DeleteWhere: removal}}, nil
}

func (o *SaveStateOperation) convert(where string) (*memoryv1.WriteOperation, error) {
	value, err := valueFrom(o.Value, where+".save_state.value")
	if err != nil {
		return nil, err
	}
	save := &memoryv1.SaveStateOperation{
		Key:             o.Key,
		Value:           value,
		ExpectedVersion: o.ExpectedVersion,
		Ttl:             durationFrom(o.TTL),
		Description:     o.Description,
	}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_SaveState{SaveState: save}}, nil
}

func (o *DeleteStateOperation) convert(string) (*memoryv1.WriteOperation, error) {
	removal := &memoryv1.DeleteStateOperation{
		Key: o.Key, ExpectedVersion: o.ExpectedVersion, AllowMissing: o.AllowMissing,
	}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_DeleteState{DeleteState: removal}}, nil
}

func writeResultTo(result *memoryv1.WriteResult) WriteResult {
	return WriteResult{
		ID:           MemoryItemId(result.GetId()),
		Revision:     result.GetRevision(),
		Version:      result.GetVersion(),
		CreateTime:   timeTo(result.GetCreateTime()),
		UpdateTime:   timeTo(result.GetUpdateTime()),
		ExpireTime:   timeTo(result.GetExpireTime()),
		Skipped:      result.GetSkipped(),
		DeletedCount: result.GetDeletedCount(),
		DerivedCount: result.GetDerivedCount(),
	}
}
