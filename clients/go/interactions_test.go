package memory_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

func say(t *testing.T, client *memory.Client, sender, content string) *memory.Interaction {
	t.Helper()
	return ok[*memory.Interaction](t)(client.StoreInteraction(soon(t), sender, content, nil))
}

func TestInteractionsReturnAsTheyWereStored(t *testing.T) {
	client := dial(t)
	stored := ok[*memory.Interaction](t)(client.StoreInteraction(
		soon(t), "ada", "How does a sail work?", &memory.StoreInteractionOptions{
			SessionID: "s1", CreateTime: noon, ID: "q1", TTL: time.Hour,
			Labels: map[string]string{"topic": "boats"}, Metadata: map[string]any{"n": 1.5},
		}))
	if stored.Kind != memory.InteractionMessage || stored.ID != "q1" || stored.Sender != "ada" || !stored.CreateTime.Equal(noon) {
		t.Errorf("stored is %+v", stored)
	}
	if stored.Labels["topic"] != "boats" || !reflect.DeepEqual(stored.Metadata, map[string]any{"n": 1.5}) || stored.ExpireTime.IsZero() {
		t.Errorf("stored is %+v", stored)
	}
	response := ok[*memory.Interaction](t)(client.StoreResponse(
		soon(t), "By the wind.", &memory.StoreResponseOptions{
			OriginalMessage: &memory.OriginalMessage{Content: "How does a sail work?", Sender: "ada", CreateTime: noon},
			Sender:          "sailor",
		}))
	if response.InResponseTo != "q1" || response.SessionID != "s1" || response.Kind != memory.InteractionResponse {
		t.Errorf("the response is %+v", response)
	}
	want := &memory.OriginalMessage{Content: "How does a sail work?", Sender: "ada", CreateTime: noon}
	if !reflect.DeepEqual(response.OriginalMessage, want) {
		t.Errorf("the original message is %+v", response.OriginalMessage)
	}
	reflection := ok[*memory.Interaction](t)(client.StoreReflection(
		soon(t), "Short answers are liked.", &memory.StoreReflectionOptions{InteractionIDs: []string{"q1"}}))
	if reflection.Kind != memory.InteractionReflection || reflection.Sender != "system" || reflection.InteractionIDs[0] != "q1" {
		t.Errorf("the reflection is %+v", reflection)
	}
	if reflection.Revision != 3 {
		t.Errorf("the revision is %d", reflection.Revision)
	}
}

func TestInteractionsRefuseWhatIsWrong(t *testing.T) {
	client := dial(t)
	_, err := client.StoreInteraction(soon(t), "", "hello", nil)
	if failure := wantError(t, err, memory.ErrInvalidArgument); failure.Field != "sender" {
		t.Errorf("the field is %q", failure.Field)
	}
	_, err = client.StoreResponse(soon(t), "hello", &memory.StoreResponseOptions{InResponseTo: "nothing"})
	wantError(t, err, memory.ErrNotFound)
	options := &memory.StoreInteractionOptions{ID: "taken"}
	ok[*memory.Interaction](t)(client.StoreInteraction(soon(t), "ada", "hello", options))
	_, err = client.StoreInteraction(soon(t), "ada", "hello", options)
	wantError(t, err, memory.ErrAlreadyExists)
}

func TestRetrieveRelevantContext(t *testing.T) {
	client := dial(t)
	message := say(t, client, "ada", "The mast of the boat is made of spruce.")
	say(t, client, "bob", "The kitchen needs paint.")
	ok[*memory.Interaction](t)(client.StoreReflection(soon(t), "Ada knows much about a boat and its mast.", nil))
	found := ok[*memory.RelevantContext](t)(client.RetrieveRelevantContext(
		soon(t), "mast of the boat", &memory.RelevantContextOptions{Sender: "ada", Mode: memory.RetrieveLexical, Explain: true}))
	if len(found.Results) != 2 || found.Results[0].Interaction.ID != message.ID || found.TokenCount == 0 {
		t.Fatalf("found are %+v", found)
	}
	if last := found.Results[1]; last.Interaction.Kind != memory.InteractionReflection || !strings.HasPrefix(last.Text, "SYSTEM REFLECTION: ") {
		t.Errorf("the reflection is %+v", last)
	}
	if shares := found.Results[0].Explanation; len(shares) != 1 || shares[0].Channel != "lexical" {
		t.Errorf("the explanation is %+v", shares)
	}
	none := ok[*memory.RelevantContext](t)(client.RetrieveRelevantContext(soon(t), "mast", &memory.RelevantContextOptions{
		InteractionLimit: memory.Ptr(0), ReflectionLimit: memory.Ptr(0),
	}))
	if len(none.Results) != 0 {
		t.Errorf("limits of 0 find %d", len(none.Results))
	}
}

func TestRetrieveLastInteractions(t *testing.T) {
	client := dial(t)
	var last *memory.Interaction
	for _, content := range []string{"one", "two", "three", "four", "five", "six"} {
		last = say(t, client, "ada", content)
	}
	ok[*memory.Interaction](t)(client.StoreResponse(soon(t), "yes", &memory.StoreResponseOptions{InResponseTo: last.ID}))
	newest := ok[*memory.LastInteractions](t)(client.RetrieveLastInteractions(soon(t), nil))
	if len(newest.Interactions) != 5 || newest.Interactions[0].Message.Content != "six" || newest.Revision != 7 {
		t.Fatalf("the newest are %+v", newest)
	}
	if pair := newest.Interactions[0]; pair.ResponseCount != 1 || pair.Responses[0].Content != "yes" {
		t.Errorf("the newest is %+v", pair)
	}
	all := ok[*memory.LastInteractions](t)(client.RetrieveLastInteractions(
		soon(t), &memory.LastInteractionsOptions{Limit: memory.Ptr(-1), PageSize: 4}))
	if len(all.Interactions) != 6 || all.Interactions[5].Message.Content != "one" {
		t.Errorf("in pages of 4 there are %d", len(all.Interactions))
	}
}
