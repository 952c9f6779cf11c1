package memory

import "github.com/memory-service/memory-service/clients/go/internal/memoryv1"

// documentFrom converts a document to be added, without the fields that only the server sets.
func documentFrom(document *Document) (*memoryv1.Document, error) {
	if document == nil {
		return nil, invalidArgument("document", "document: the document is missing")
	}
	metadata, err := optionalStructFrom(document.Metadata, "document.metadata")
	if err != nil {
		return nil, err
	}
	return &memoryv1.Document{
		Id:         document.ID,
		Text:       document.Text,
		Title:      document.Title,
		Source:     document.Source,
		SessionId:  document.SessionID,
		Labels:     document.Labels,
		Metadata:   metadata,
		CreateTime: timeFrom(document.CreateTime),
		ExpireTime: timeFrom(document.ExpireTime),
		Ttl:        durationFrom(document.TTL),
	}, nil
}

// documentTo converts to a document. Nil stays nil.
func documentTo(document *memoryv1.Document) *Document {
	if document == nil {
		return nil
	}
	return &Document{
		ID:            document.GetId(),
		Text:          document.GetText(),
		Title:         document.GetTitle(),
		Source:        document.GetSource(),
		SourceItemID:  document.GetSourceItemId(),
		SessionID:     document.GetSessionId(),
		Labels:        document.GetLabels(),
		Metadata:      structTo(document.GetMetadata()),
		CreateTime:    timeTo(document.GetCreateTime()),
		UpdateTime:    timeTo(document.GetUpdateTime()),
		ExpireTime:    timeTo(document.GetExpireTime()),
		Version:       document.GetVersion(),
		FragmentCount: int(document.GetFragmentCount()),
		SizeBytes:     document.GetSizeBytes(),
		Preview:       document.GetPreview(),
		Revision:      document.GetRevision(),
		Provenance:    provenanceTo(document.GetProvenance()),
	}
}

// splitFrom converts split options. Nil stays unset.
func splitFrom(split *SplitOptions) (*memoryv1.SplitOptions, error) {
	if split == nil {
		return nil, nil
	}
	maxCharacters, err := optionalInt32From(split.MaxCharacters, "split.max_characters")
	if err != nil {
		return nil, err
	}
	overlapCharacters, err := optionalInt32From(split.OverlapCharacters, "split.overlap_characters")
	if err != nil {
		return nil, err
	}
	return &memoryv1.SplitOptions{MaxCharacters: maxCharacters, OverlapCharacters: overlapCharacters}, nil
}

func fragmentTo(fragment *memoryv1.Fragment) *Fragment {
	return &Fragment{
		ID:              fragment.GetId(),
		DocumentID:      fragment.GetDocumentId(),
		DocumentVersion: fragment.GetDocumentVersion(),
		Index:           int(fragment.GetIndex()),
		Text:            fragment.GetText(),
		StartOffset:     int(fragment.GetStartOffset()),
		EndOffset:       int(fragment.GetEndOffset()),
		StartByte:       int(fragment.GetStartByte()),
		EndByte:         int(fragment.GetEndByte()),
		CreateTime:      timeTo(fragment.GetCreateTime()),
		Provenance:      provenanceTo(fragment.GetProvenance()),
	}
}

func fragmentResultTo(result *memoryv1.FragmentResult) FragmentResult {
	return FragmentResult{
		Fragment:    fragmentTo(result.GetFragment()),
		Document:    documentTo(result.GetDocument()),
		Score:       result.GetScore(),
		Explanation: explanationTo(result.GetExplanation()),
	}
}
