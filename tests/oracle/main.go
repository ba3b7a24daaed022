// Command oracle answers scheduling scenarios with the code of kube-scheduler itself.
//
// It reads one scenario per line on standard input and writes one result per line, in the same
// order, on standard output. The format is that of the recorded vectors under tests/parity: the
// result has the scenario's id and the keys of its "expect". A scenario that kube-scheduler itself
// would refuse (a bad profile, an object that does not decode) is answered with "error".
//
// It is test equipment: nothing of it is shipped.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// Scenarios of a few dozen nodes are about 100 kB; leave room for large ones.
const longestLine = 256 << 20

func main() {
	// Much of the work is short-lived objects; memory is not scarce here.
	debug.SetGCPercent(400)
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	metrics.Register()
	// With it on, the delete requests of a preemption are sent after PostFilter has returned.
	if err := utilfeature.DefaultMutableFeatureGate.Set("SchedulerAsyncPreemption=false"); err != nil {
		fail(err)
	}
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "oracle:", err)
	os.Exit(1)
}

// answerAll keeps every core busy and the answers in the order of the questions.
func answerAll(in io.Reader, out io.Writer) error {
	pending := make(chan chan []byte, 2*runtime.GOMAXPROCS(0))
	readErr := make(chan error, 1)
	go func() {
		defer close(pending)
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 0, 1<<20), longestLine)
		running := make(chan struct{}, runtime.GOMAXPROCS(0))
		for lines.Scan() {
			if len(lines.Bytes()) == 0 {
				continue
			}
			line := append([]byte(nil), lines.Bytes()...)
			answer := make(chan []byte, 1)
			pending <- answer
			running <- struct{}{}
			go func() {
				defer func() { <-running }()
				answer <- answerLine(line)
			}()
		}
		readErr <- lines.Err()
	}()

	writer := bufio.NewWriterSize(out, 1<<20)
	for answer := range pending {
		if _, err := writer.Write(append(<-answer, '\n')); err != nil {
			return err
		}
		// Whoever asks one question at a time wants the answer before the next one.
		if len(pending) == 0 {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	return <-readErr
}

func answerLine(line []byte) []byte {
	var scenario Scenario
	var result *Result
	if err := json.Unmarshal(line, &scenario); err != nil {
		result = &Result{Error: fmt.Sprintf("decoding scenario: %v", err)}
	} else {
		result = answer(&scenario)
	}
	result.ID = scenario.ID
	encoded, err := json.Marshal(result)
	if err != nil {
		fail(err)
	}
	return encoded
}

// answer turns an accident inside kube-scheduler into an answer, so that the other lines get theirs.
func answer(scenario *Scenario) (result *Result) {
	defer func() {
		if accident := recover(); accident != nil {
			result = &Result{Error: fmt.Sprintf("panic: %v\n%s", accident, debug.Stack())}
		}
	}()
	attempt, err := newAttempt(scenario)
	if err != nil {
		return &Result{Error: err.Error()}
	}
	defer attempt.close()
	if err := attempt.run(); err != nil {
		return &Result{Error: err.Error()}
	}
	return &attempt.result
}
