// Reads payloads of extenders with Kubernetes' own types and writes them again.
//
// In: a line {"type": "ExtenderArgs", "data": {...}}. Out: a line {"data": {...}}, or {"error": "..."}
// if the data has a field that the type does not have, or is not of that type at all.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"

	extender "k8s.io/kube-scheduler/extender/v1"
)

type payload struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

type outcome struct {
	Data  any    `json:"data,omitempty"`
	Error string `json:"error,omitempty"`
}

// types maps the names of the payloads to fresh values of their types.
var types = map[string]func() any{
	"ExtenderArgs":             func() any { return &extender.ExtenderArgs{} },
	"ExtenderFilterResult":     func() any { return &extender.ExtenderFilterResult{} },
	"HostPriorityList":         func() any { return &extender.HostPriorityList{} },
	"ExtenderPreemptionArgs":   func() any { return &extender.ExtenderPreemptionArgs{} },
	"ExtenderPreemptionResult": func() any { return &extender.ExtenderPreemptionResult{} },
	"ExtenderBindingArgs":      func() any { return &extender.ExtenderBindingArgs{} },
	"ExtenderBindingResult":    func() any { return &extender.ExtenderBindingResult{} },
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			return
		}
		if err := answers.Encode(passThrough(line)); err != nil {
			log.Fatal(err)
		}
		if err != nil {
			return
		}
	}
}

func passThrough(line []byte) outcome {
	var given payload
	if err := json.Unmarshal(line, &given); err != nil {
		return outcome{Error: err.Error()}
	}
	fresh, known := types[given.Type]
	if !known {
		return outcome{Error: fmt.Sprintf("no such type: %s", given.Type)}
	}
	value := fresh()
	decoder := json.NewDecoder(bytes.NewReader(given.Data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{Data: value}
}
