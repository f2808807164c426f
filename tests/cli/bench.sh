# convoy bench: a step measured, as text and as JSON; wrong usage in one line.
. "$SOURCE/tests/cli/harness"

tiny="--model lenet5 --input 1x12x12 --batch-size 8 --steps 2 --threads-per-device 1"

ok bench step $tiny
has out "lenet5, input 1x12x12, batch 8, single on cpu:0, S=1 T=1, conv-algo auto"
grep -q '^images/s: median [0-9.]*, middle half [0-9.]* to [0-9.]*, best [0-9.]*, worst [0-9.]* of 2 steps$' out ||
    die "no images/s"
has out "memory: peak "
has out "outside kernels: "
for operator in conv2d_backward_weights linear sgd; do has out "  $operator "; done
ok bench step $tiny --json --accumulate 3 --devices cpu:0-1 --shards 4
for text in '"images_per_s": ' '"peak_memory_bytes": ' '"accumulate": 3' '"devices": "cpu:0-1"' '"outside_kernels": ' \
    '"name": "conv2d"' '"shards": 4'; do has out "$text"; done
ok bench step $tiny --timeline trace.json
has trace.json '"traceEvents"'

fails 2 "'bench ': the second word must be one of step, compare, tune" bench
fails 2 "'bench stepp': the second word must be one of step, compare, tune" bench stepp
fails 2 "no model is named" bench step
fails 2 "did you mean lenet5?" bench step --model lenet
fails 2 "--steps 0: must be from 1" bench step $tiny --steps 0
fails 2 "unknown flag --data" bench step $tiny --data digits
fails 2 "'now': no such argument" bench step now
fails 2 "is no classifier" bench step --model simple
fails 2 "'drect'; did you mean direct; take auto, direct or winograd" bench step $tiny --conv-algo drect
fails 2 "cannot read '+forward:1x2'" bench step $tiny --conv-algo auto+forward:1x2
fails 1 "nowhere/trace.json" bench step $tiny --timeline nowhere/trace.json
ok bench step --help
has out "usage: convoy bench step --model NAME"
ok --help
has out "  bench step    measure a training step"

# two settings in turn
ok bench compare $tiny --rounds 2 --a "--shards 2" --b "--devices cpu:0-1 --opt-args 'dampening=0.1 momentum=0.8'"
grep -q '^round 2: A [0-9.]*, B [0-9.]* images/s, B over A [0-9.]*$' out || die "no second round"
grep -q '^A: median [0-9.]* images/s ([0-9.]* to [0-9.]*), peak memory [0-9]* MB, cpu:0, S=2 T=1$' out || die "no A"
grep -q '^B: .* MB, cpu:0-1, S=2 T=1$' out || die "no B"
grep -q '^B over A: [0-9.]* ([0-9.]* to [0-9.]*), faster in [0-2] of 2 rounds$' out || die "no ratio"
echo '{"model": "lenet5", "batch-size": 8, "steps": 1}' >flags.json
ok bench compare --config flags.json --rounds 1 --b --conv-algo=direct --json
for text in '"flags": "--conv-algo=direct"' '"b_over_a"' '"rounds_faster"' '"peak_memory_bytes"'; do has out "$text"; done
fails 2 "nothing to compare with: give --b" bench compare $tiny
fails 2 "B: unknown flag --modell; did you mean --model?" bench compare $tiny --b "--modell x"
fails 2 "A: 'a \"b': the quote \" has no end" bench compare $tiny --a 'a "b' --b --tf32
fails 1 "nowhere" bench compare $tiny --b "--timeline nowhere/trace.json" --rounds 1
