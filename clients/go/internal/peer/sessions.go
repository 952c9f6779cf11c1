package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var sessionAdapters = map[string]adapter{
	"SessionService/ListSessions":  listSessions,
	"SessionService/GetSession":    getSession,
	"SessionService/UpdateSession": updateSession,
	"SessionService/DeleteSession": deleteSession,
	"SessionService/ForkSession":   forkSession,
}

func listSessions(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	options := &memory.ListSessionsOptions{
		Prefix: in.text("prefix"), Labels: in.labels("labels"), PageSize: in.number("page_size"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		sessions, err := collected(client.ListSessions(ctx, options), sessionOf)
		return &memoryv1.ListSessionsResponse{Sessions: sessions}, err
	}
}

func getSession(client *memory.Client, in *fields) call {
	client, id := scoped(client, in), in.text("session_id")
	return func(ctx context.Context) (proto.Message, error) {
		session, err := client.GetSession(ctx, id)
		if err != nil {
			return nil, err
		}
		return &memoryv1.GetSessionResponse{Session: sessionOf(session), Revision: session.NamespaceRevision}, nil
	}
}

func updateSession(client *memory.Client, in *fields) call {
	client, write := scoped(client, in), writeOptions(in)
	in.required("session")
	id, changes := in.child("session").sessionChanges()
	changes.AllowMissing = in.flag("allow_missing")
	return func(ctx context.Context) (proto.Message, error) {
		session, err := client.UpdateSession(ctx, id, changes, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.UpdateSessionResponse{
			Session:  sessionOf(session),
			Revision: session.NamespaceRevision,
			Degraded: degradedOf(session.Degraded),
		}, nil
	}
}

// sessionChanges reads the new values of a session, and its id.
func (f *fields) sessionChanges() (string, memory.SessionChanges) {
	if f == nil {
		return "", memory.SessionChanges{}
	}
	return f.text("session_id"), memory.SessionChanges{
		Title: f.text("title"), Labels: f.labels("labels"), Metadata: f.object("metadata"),
	}
}

func deleteSession(client *memory.Client, in *fields) call {
	client, id, write := scoped(client, in), in.text("session_id"), writeOptions(in)
	if in.flag("keep_derived") {
		write = append(write, memory.WithKeepDerived())
	}
	return func(ctx context.Context) (proto.Message, error) {
		var derived int64
		deleted, err := client.DeleteSession(ctx, id, append(write, memory.WithDerivedCount(&derived))...)
		return &memoryv1.DeleteSessionResponse{DeletedCount: deleted, DerivedCount: derived}, err
	}
}

func forkSession(client *memory.Client, in *fields) call {
	client, id, write := scoped(client, in), in.text("session_id"), writeOptions(in)
	options := &memory.ForkSessionOptions{
		NewSessionID:  in.text("new_session_id"),
		UntilItemID:   in.text("until_item_id"),
		UntilRevision: in.optionalInteger("until_revision"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		session, err := client.ForkSession(ctx, id, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.ForkSessionResponse{
			Session:  sessionOf(session),
			Revision: session.NamespaceRevision,
			Degraded: degradedOf(session.Degraded),
		}, nil
	}
}

func sessionOf(session *memory.Session) *memoryv1.Session {
	message := &memoryv1.Session{
		SessionId:    session.ID,
		Title:        session.Title,
		Labels:       session.Labels,
		Metadata:     objectOf(session.Metadata),
		ItemCount:    session.ItemCount,
		FirstTime:    timeOf(session.FirstTime),
		LastTime:     timeOf(session.LastTime),
		Participants: session.Participants,
		Version:      session.Version,
		UpdateTime:   timeOf(session.UpdateTime),
	}
	if origin := session.ForkedFrom; origin != nil {
		message.ForkedFrom = &memoryv1.SessionOrigin{
			SessionId: origin.SessionID, UntilItemId: origin.UntilItemID, Revision: origin.Revision,
		}
	}
	return message
}
