package memory

import (
	"context"
	"iter"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// ListSessions yields the sessions, the one with the latest activity first; pages are fetched as needed.
// Nil options are the defaults.
func (c *Client) ListSessions(ctx context.Context, options *ListSessionsOptions) iter.Seq2[*Session, error] {
	wanted := orDefaults(options)
	return paged(func(token string) ([]*Session, string, error) {
		pageSize, err := int32From(wanted.PageSize, "page_size")
		if err != nil {
			return nil, "", err
		}
		response, err := invoke(ctx, c, c.sessions.ListSessions, &memoryv1.ListSessionsRequest{
			Namespace: c.namespace,
			PageSize:  pageSize,
			PageToken: token,
			Prefix:    wanted.Prefix,
			Labels:    wanted.Labels,
		})
		return each(response.GetSessions(), sessionTo), response.GetNextPageToken(), err
	})
}

// GetSession returns a session. It returns [ErrNotFound] if there is none with this id.
func (c *Client) GetSession(ctx context.Context, id string) (*Session, error) {
	response, err := invoke(ctx, c, c.sessions.GetSession, &memoryv1.GetSessionRequest{
		Namespace: c.namespace, SessionId: id,
	})
	if err != nil {
		return nil, err
	}
	session := sessionTo(response.GetSession())
	session.NamespaceRevision = response.GetRevision()
	return session, nil
}

// UpdateSession changes the fields of a session that are set, or those that [WithFields] names: "title",
// "labels", "metadata". It takes [WithFields], [WithExpectedVersion], with which it returns [ErrConflict]
// if the session's version differs, and [WithRequestID]. It returns [ErrNotFound] if there is no such
// session and AllowMissing is not set.
func (c *Client) UpdateSession(
	ctx context.Context, id string, changes SessionChanges, write ...WriteOption,
) (*Session, error) {
	settings, err := writeSettingsFrom(write, fieldsOption, expectedVersionOption)
	if err != nil {
		return nil, err
	}
	metadata, err := optionalStructFrom(changes.Metadata, "session.metadata")
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.sessions.UpdateSession, &memoryv1.UpdateSessionRequest{
		Namespace: c.namespace,
		Session: &memoryv1.Session{
			SessionId: id, Title: changes.Title, Labels: changes.Labels, Metadata: metadata,
		},
		UpdateMask:      maskOf(settings.fields),
		ExpectedVersion: settings.expectedVersion,
		AllowMissing:    changes.AllowMissing,
		RequestId:       settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	return writtenSession(response), nil
}

// DeleteSession removes a session with all its items and what was made only from them. It returns how many
// items there were, without the latter; a session that does not exist has none. It deletes up to 10,000
// items at a time, each of these parts as a whole. Items that are added meanwhile stay.
//
// With an error it returns how many items it has deleted; call it again to delete the rest. It takes
// [WithKeepDerived], [WithDerivedCount] and [WithRequestID], which is the id of the first part; the others
// get new ones.
func (c *Client) DeleteSession(ctx context.Context, id string, write ...WriteOption) (deleted int64, err error) {
	settings, err := writeSettingsFrom(write, keepDerivedOption, derivedCountOption)
	if err != nil {
		return 0, err
	}
	request := &memoryv1.DeleteSessionRequest{
		Namespace:   c.namespace,
		SessionId:   id,
		KeepDerived: settings.keepDerived,
		RequestId:   settings.requestID,
	}
	for {
		response, err := invoke(ctx, c, c.sessions.DeleteSession, request)
		if err != nil {
			return deleted, err
		}
		deleted += response.GetDeletedCount()
		*settings.derivedCount += response.GetDerivedCount()
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return deleted, nil
		}
		request.RequestId = newUUID()
	}
}

// ForkSession copies a session of at most 1000 items, or its beginning, to a new one, all or nothing, and
// returns the new one. The copies have new ids; later changes of one session do not affect the other. Nil
// options are the defaults. It takes [WithRequestID].
//
// It returns [ErrNotFound] if there is no such session or item, [ErrAlreadyExists] if there is a session
// with the new id, and [ErrLimitExceeded] if there is too much to copy.
func (c *Client) ForkSession(
	ctx context.Context, id string, options *ForkSessionOptions, write ...WriteOption,
) (*Session, error) {
	settings, err := writeSettingsFrom(write)
	if err != nil {
		return nil, err
	}
	wanted := orDefaults(options)
	response, err := invoke(ctx, c, c.sessions.ForkSession, &memoryv1.ForkSessionRequest{
		Namespace:     c.namespace,
		SessionId:     id,
		NewSessionId:  wanted.NewSessionID,
		UntilItemId:   wanted.UntilItemID,
		UntilRevision: wanted.UntilRevision,
		RequestId:     settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	return writtenSession(response), nil
}

func writtenSession(response interface {
	GetSession() *memoryv1.Session
	GetRevision() int64
	GetDegraded() []*memoryv1.Degradation
},
) *Session {
	session := sessionTo(response.GetSession())
	session.NamespaceRevision, session.Degraded = response.GetRevision(), degradedTo(response.GetDegraded())
	return session
}

func sessionTo(session *memoryv1.Session) *Session {
	found := &Session{
		ID:           session.GetSessionId(),
		Title:        session.GetTitle(),
		Labels:       session.GetLabels(),
		Metadata:     structTo(session.GetMetadata()),
		ItemCount:    session.GetItemCount(),
		FirstTime:    timeTo(session.GetFirstTime()),
		LastTime:     timeTo(session.GetLastTime()),
		Participants: session.GetParticipants(),
		Version:      session.GetVersion(),
		UpdateTime:   timeTo(session.GetUpdateTime()),
	}
	if origin := session.GetForkedFrom(); origin != nil {
		found.ForkedFrom = &SessionOrigin{
			SessionID:   origin.GetSessionId(),
			UntilItemID: origin.GetUntilItemId(),
			Revision:    origin.GetRevision(),
		}
	}
	return found
}
