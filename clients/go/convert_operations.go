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

func (o *WriteFileOperation) convert(string) (*memoryv1.WriteOperation, error) {
	write := &memoryv1.WriteFileOperation{
		Path:            o.Path,
		Content:         o.Content,
		ExpectedVersion: o.ExpectedVersion,
		ExpectedSha256:  o.ExpectedSHA256,
	}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_WriteFile{WriteFile: write}}, nil
}

func (o *EditFileOperation) convert(where string) (*memoryv1.WriteOperation, error) {
	converted := &memoryv1.EditFileOperation{
		Path: o.Path, ExpectedVersion: o.ExpectedVersion, ExpectedSha256: o.ExpectedSHA256,
	}
	switch edit := o.Edit.(type) {
	case *ReplaceText:
		converted.Edit = &memoryv1.EditFileOperation_Replace{Replace: replaceTextFrom(edit)}
	case *InsertText:
		insert, err := insertTextFrom(edit, where+".edit_file.insert")
		if err != nil {
			return nil, err
		}
		converted.Edit = &memoryv1.EditFileOperation_Insert{Insert: insert}
	case *AppendText:
		converted.Edit = &memoryv1.EditFileOperation_Append{Append: appendTextFrom(edit)}
	}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_EditFile{EditFile: converted}}, nil
}

func (o *RenameFileOperation) convert(string) (*memoryv1.WriteOperation, error) {
	rename := &memoryv1.RenameFileOperation{
		Path: o.Path, NewPath: o.NewPath, ExpectedVersion: o.ExpectedVersion,
	}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_RenameFile{RenameFile: rename}}, nil
}

func (o *DeleteFileOperation) convert(string) (*memoryv1.WriteOperation, error) {
	removal := &memoryv1.DeleteFileOperation{
		Path: o.Path, Recursive: o.Recursive, ExpectedVersion: o.ExpectedVersion,
	}
	return &memoryv1.WriteOperation{Operation: &memoryv1.WriteOperation_DeleteFile{DeleteFile: removal}}, nil
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
		RenamedCount: result.GetRenamedCount(),
	}
}
