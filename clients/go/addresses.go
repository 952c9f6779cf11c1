package memory

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const portMax = 65_535

var lastColon = regexp.MustCompile(`:([^:/\]]*)$`)

// addressesOf returns the addresses of a comma-separated target, in the given order.
func addressesOf(target string) ([]string, error) {
	entries := strings.Split(target, ",")
	var found []string
	for i, entry := range entries {
		address := strings.TrimSpace(entry)
		if address == "" {
			return nil, invalidArgument("target", fmt.Sprintf("address %d of %d is empty", i+1, len(entries)))
		}
		if slices.Contains(found, address) {
			return nil, invalidArgument("target", fmt.Sprintf("the address %q is given twice", address))
		}
		if err := checkPort(address, len(entries) == 1); err != nil {
			return nil, err
		}
		found = append(found, address)
	}
	return found, nil
}

func checkPort(address string, isAlone bool) error {
	for _, scheme := range []string{"unix:", "unix-abstract:", "vsock:", "xds:"} {
		if strings.HasPrefix(address, scheme) {
			return nil
		}
	}
	port := ""
	if match := lastColon.FindStringSubmatch(address); match != nil {
		port = match[1]
	}
	if port == "" || strings.Trim(port, "0123456789") != "" {
		if isAlone {
			return nil // In a single address the port may be omitted or be a name, as gRPC allows.
		}
		return invalidArgument("target", fmt.Sprintf("%q is not a host and port", address))
	}
	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > portMax {
		return invalidArgument("target", fmt.Sprintf("the port of %q is not 1 to %d", address, portMax))
	}
	return nil
}
