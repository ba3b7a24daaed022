// helmrender renders charts with Helm's own packages: one question per line on standard input, one
// answer per line on standard output. It is to `helm template` what a library is to its command.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

type question struct {
	Chart     string         `json:"chart"`
	Release   string         `json:"release"`
	Namespace string         `json:"namespace"`
	Values    map[string]any `json:"values"`
}

type answer struct {
	Files map[string]string `json:"files,omitempty"`
	Error string            `json:"error,omitempty"`
}

func main() {
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		files, err := render(line)
		reply := answer{Files: files}
		if err != nil {
			reply.Error = err.Error()
		}
		if err := out.Encode(reply); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func render(line []byte) (map[string]string, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	chart, err := loader.Load(asked.Chart)
	if err != nil {
		return nil, err
	}
	if err := chart.Validate(); err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: asked.Release, Namespace: asked.Namespace, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, asked.Values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, values)
}
