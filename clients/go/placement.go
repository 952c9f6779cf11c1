package memory

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

const (
	// namespaceHeader is the metadata key of a call's namespace, for proxies.
	namespaceHeader = "memory-namespace"
	// Longer names are not valid namespaces, and would fill the metadata.
	namespaceHeaderBytesMax = 1024
)

// orderOf returns the indexes of the addresses in the order in which the calls of a namespace try them:
// by weight, highest first; without a namespace, as given. The order is the same in every client: see
// "Several servers" in clients/README.md, and clients/placement.json.
func orderOf(addresses []string, namespace string) []int {
	order := make([]int, len(addresses))
	weights := make([]uint64, len(addresses))
	for i, address := range addresses {
		order[i] = i
		if namespace != "" && len(addresses) > 1 {
			weights[i] = weightOf(address, namespace)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	return order
}

// weightOf returns the weight of an address for a namespace: the first 8 bytes, as an unsigned
// big-endian integer, of the SHA-256 of the address, a zero byte and the namespace.
func weightOf(address, namespace string) uint64 {
	digest := sha256.Sum256([]byte(address + "\x00" + namespace))
	return binary.BigEndian.Uint64(digest[:])
}

// headerOf returns the namespace's metadata, key and value, encoded like grpc-message. Nil: none.
func headerOf(namespace string) []string {
	var encoded strings.Builder
	for _, char := range []byte(namespace) {
		if char < ' ' || char > '~' || char == '%' {
			fmt.Fprintf(&encoded, "%%%02X", char)
		} else {
			encoded.WriteByte(char)
		}
	}
	if encoded.Len() == 0 || encoded.Len() > namespaceHeaderBytesMax {
		return nil
	}
	return []string{namespaceHeader, encoded.String()}
}

// namespaceIn returns the namespace of a request. Empty: none.
func namespaceIn(request any) string {
	if named, ok := request.(interface{ GetNamespace() string }); ok {
		return named.GetNamespace()
	}
	return ""
}
