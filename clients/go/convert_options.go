package memory

import (
	"reflect"
	"time"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// toRetrieve returns the options as the server takes them, for the first page.
func (o *MemoryRetrieveOptions) toRetrieve() (*memoryv1.RetrieveOptions, error) {
	if o.NewestFirst {
		return nil, invalidArgument("", "WithNewestFirst is for lists; what is retrieved has an order of its own")
	}
	kinds, err := kindsFrom(o.Kinds, "options.kinds")
	if err != nil {
		return nil, err
	}
	mode, err := enumFrom[memoryv1.RetrieveMode](
		memoryv1.RetrieveMode_value, "RETRIEVE_MODE_", o.Mode, "options.mode")
	if err != nil {
		return nil, err
	}
	limit, window, pageSize, err := o.numbers()
	if err != nil {
		return nil, err
	}
	return &memoryv1.RetrieveOptions{
		Limit:            &limit,
		QueryText:        o.Query,
		QueryEmbedding:   embeddingFrom(o.QueryEmbedding),
		SessionId:        o.SessionID,
		Filter:           o.Filter,
		Labels:           o.Labels,
		StartTime:        timeFrom(o.StartTime),
		EndTime:          timeFrom(o.EndTime),
		MinScore:         o.MinScore,
		Mode:             mode,
		ContextWindow:    window,
		Explain:          o.Explain,
		IncludeEmbedding: o.IncludeEmbeddings,
		PageSize:         pageSize,
		Kinds:            kinds,
	}, nil
}

func (o *MemoryRetrieveOptions) numbers() (limit, window, pageSize int32, err error) {
	if limit, err = int32From(o.Limit, "options.limit"); err != nil {
		return 0, 0, 0, err
	}
	if window, err = int32From(o.ContextWindow, "options.context_window"); err != nil {
		return 0, 0, 0, err
	}
	pageSize, err = int32From(o.PageSize, "options.page_size")
	return limit, window, pageSize, err
}

// toList returns the options as the server takes them in a list, for the first page. The namespace
// is still to be set.
func (o *MemoryRetrieveOptions) toList() (*memoryv1.ListRequest, error) {
	rest := *o
	rest.SessionID, rest.Labels, rest.Filter, rest.Kinds = "", nil, "", nil
	rest.StartTime, rest.EndTime = time.Time{}, time.Time{}
	rest.NewestFirst, rest.IncludeEmbeddings, rest.PageSize = false, false, 0
	if !rest.areDefaults() {
		return nil, invalidArgument("", "a list takes no options for queries and limits")
	}
	kinds, err := kindsFrom(o.Kinds, "kinds")
	if err != nil {
		return nil, err
	}
	pageSize, err := int32From(o.PageSize, "page_size")
	if err != nil {
		return nil, err
	}
	return &memoryv1.ListRequest{
		PageSize:         pageSize,
		SessionId:        o.SessionID,
		Labels:           o.Labels,
		StartTime:        timeFrom(o.StartTime),
		EndTime:          timeFrom(o.EndTime),
		Filter:           o.Filter,
		NewestFirst:      o.NewestFirst,
		IncludeEmbedding: o.IncludeEmbeddings,
		Kinds:            kinds,
	}, nil
}

// setGet sets what one item can be asked for with.
func (o *MemoryRetrieveOptions) setGet(request *memoryv1.GetRequest) error {
	rest := *o
	rest.IncludeEmbeddings = false
	if !rest.areDefaults() {
		return invalidArgument("", "Get takes WithEmbeddings alone")
	}
	request.IncludeEmbedding = o.IncludeEmbeddings
	return nil
}

func (o *MemoryRetrieveOptions) areDefaults() bool {
	return reflect.DeepEqual(o, NewMemoryRetrieveOptions())
}
