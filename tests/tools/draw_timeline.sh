# tools/draw_timeline draws what is in a trace: a made-up one to the pixel, and every pass of a fresh run.
set -eu

python3 -c 'import json' 2>/dev/null || { echo "skipped: no Python 3 with its standard library"; exit 77; }
draw=$SOURCE/tools/draw_timeline

# Step 1 takes 10 ms, step 0 longer. 882 pixels, from 62 on, are 10 ms: 88.2 for each.
cat >made_up.json <<'END'
{"otherData": {"strategy": "<ddp>", "model": "none", "batch": 8, "shards": 4, "threads": 1}, "traceEvents": [
{"name": "thread_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "cpu:0"}},
{"name": "thread_name", "ph": "M", "pid": 0, "tid": 1, "args": {"name": "cpu:1"}},
{"name": "relu", "cat": "forward", "ph": "X", "pid": 0, "tid": 0, "ts": 0, "dur": 20000, "args": {"step": 0, "shard": 0}},
{"name": "conv2d", "cat": "forward", "ph": "X", "pid": 0, "tid": 0, "ts": 0, "dur": 2000, "args": {"step": 1, "shard": 3}},
{"name": "relu", "cat": "forward", "ph": "X", "pid": 0, "tid": 0, "ts": 2000, "dur": 2000, "args": {"step": 1, "shard": 3}},
{"name": "relu'", "cat": "backward", "ph": "X", "pid": 0, "tid": 0, "ts": 5000, "dur": 2500, "args": {"step": 1, "shard": 3}},
{"name": "reduce", "cat": "instruction", "ph": "X", "pid": 0, "tid": 0, "ts": 7500, "dur": 1, "args": {"step": 1, "kind": "host", "bucket": 0}},
{"name": "wait", "cat": "instruction", "ph": "X", "pid": 0, "tid": 1, "ts": 8000, "dur": 2000, "args": {"step": 1, "kind": "reduce", "bucket": 0}}
]}
END
"$draw" made_up.json -o made_up.svg
"$draw" made_up.json >piped.svg
cmp made_up.svg piped.svg
cat >expected <<'END'
x="62.0" y="40" width="352.8" height="34"><title>forward pass of a shard, shard 3: 4.00 ms
x="503.0" y="40" width="220.5" height="34"><title>backward pass, shard 3: 2.50 ms
x="767.6" y="82" width="176.4" height="34"><title>all-reduce: waiting and adding: 2.00 ms
END
sed -n 's/^<rect .* \(x="[^<]*<title>[^<]*\)<.*/\1/p' made_up.svg | diff expected -
grep -q 'class="mark" x1="723.5"' made_up.svg # 7.5 ms
grep -q '>F3</text>' made_up.svg
grep -q '&lt;ddp&gt;: none, batch 8, S=4 T=1, one step of 10.0 ms' made_up.svg
"$draw" made_up.json --step 0 --title "a & b" | grep -q 'a &amp; b'
"$draw" made_up.json --step 0 | grep -q 'shard 0: 20.00 ms'

# what cannot be drawn is said in one line
refuses() {
    code=0
    "$draw" "$@" 2>said || code=$?
    cat said
    test "$code" -eq 1 && test "$(wc -l <said)" -eq 1
}
refuses made_up.json --step 7 && grep -q 'no step 7' said
refuses missing.json && grep -q 'missing.json: No such file' said
echo '{"traceEvents": [{}]}' >other.json
refuses other.json && grep -q 'not a trace' said
echo '{"traceEvents": []}' >empty.json
refuses empty.json && grep -q 'no step' said
refuses made_up.json -o no/folder.svg && grep -q 'no/folder.svg' said

# a pipeline of two stages: every shard goes forward and back on both devices
"$CONVOY" bench step --model resnet20 --input 3x16x16 --batch-size 32 --devices cpu:0-1 --strategy pipeline --shards 4 \
    --threads-per-device 1 --steps 3 --timeline run.json
"$draw" run.json -o run.svg
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse("run.svg")'
for shard in 0 1 2 3; do
    test "$(grep -c "forward pass of a shard, shard $shard:" run.svg)" -eq 2
    test "$(grep -c "backward pass, shard $shard:" run.svg)" -ge 2
done
grep -q 'waiting for another device: ' run.svg
grep -q '>cpu:1</text>' run.svg
test "$(wc -c <run.svg)" -lt 40000
