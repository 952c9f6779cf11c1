package memory

import (
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// provenanceFrom converts a provenance with all its fields. Nil stays nil.
func provenanceFrom(provenance *Provenance, where string) (*memoryv1.Provenance, error) {
	if provenance == nil {
		return nil, nil
	}
	source, err := sourceKindFrom(provenance.Source, where+".source")
	if err != nil {
		return nil, err
	}
	converted := &memoryv1.Provenance{
		Writer:       provenance.Writer,
		CredentialId: provenance.CredentialID,
		Source:       source,
		SourceUri:    provenance.SourceURI,
		Model:        provenance.Model,
		Trust:        provenance.Trust,
		WriteTime:    timeFrom(provenance.WriteTime),
	}
	for _, id := range provenance.ParentIDs {
		converted.ParentIds = append(converted.ParentIds, string(id))
	}
	return converted, nil
}

// provenanceTo converts to a provenance; nil stays nil.
func provenanceTo(provenance *memoryv1.Provenance) *Provenance {
	if provenance == nil {
		return nil
	}
	converted := &Provenance{
		Writer:       provenance.GetWriter(),
		CredentialID: provenance.GetCredentialId(),
		Source:       enumTo[SourceKind](provenance.GetSource(), "SOURCE_KIND_"),
		SourceURI:    provenance.GetSourceUri(),
		Model:        provenance.GetModel(),
		Trust:        provenance.Trust,
		WriteTime:    timeTo(provenance.GetWriteTime()),
	}
	for _, id := range provenance.GetParentIds() {
		converted.ParentIDs = append(converted.ParentIDs, MemoryItemId(id))
	}
	return converted
}

func sourceKindFrom(source SourceKind, field string) (memoryv1.SourceKind, error) {
	return enumFrom[memoryv1.SourceKind](memoryv1.SourceKind_value, "SOURCE_KIND_", source, field)
}

func sourcesFrom(sources []SourceKind, field string) ([]memoryv1.SourceKind, error) {
	var numbers []memoryv1.SourceKind
	for _, source := range sources {
		number, err := sourceKindFrom(source, field)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}
