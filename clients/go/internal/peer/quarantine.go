package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

func listQuarantined(client *memory.Client, in *fields) call {
	client, option := scoped(client, in), memory.WithEntriesPerPage(in.number("page_size"))
	return func(ctx context.Context) (proto.Message, error) {
		writes, err := collected(client.ListQuarantined(ctx, option), quarantinedOf)
		return &memoryv1.ListQuarantinedResponse{Writes: writes}, err
	}
}

func quarantinedOf(write memory.QuarantinedWrite) *memoryv1.QuarantinedWrite {
	return &memoryv1.QuarantinedWrite{
		Id:         write.ID,
		Reason:     write.Reason,
		CreateTime: timeOf(write.CreateTime),
		ExpireTime: timeOf(write.ExpireTime),
		Items:      each(write.Items, itemOf),
	}
}

func reviewQuarantined(client *memory.Client, in *fields) call {
	client, id := scoped(client, in), in.text("id")
	decision := memory.QuarantineDecision(in.enum("decision"))
	return func(ctx context.Context) (proto.Message, error) {
		reviewed, err := client.ReviewQuarantined(ctx, id, decision)
		if err != nil {
			return nil, err
		}
		return &memoryv1.ReviewQuarantinedResponse{
			ItemCount: int32(reviewed.ItemCount),
			Revision:  reviewed.Revision,
			Degraded:  degradedOf(reviewed.Degraded),
		}, nil
	}
}
