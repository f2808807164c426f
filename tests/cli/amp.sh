# --amp: who can, and who says that it cannot; the scale of fp16 in metrics and checkpoints; evaluation.
. "$SOURCE/tests/cli/harness"

fails 2 "backend cpu, --amp fp16: " train $quick --amp fp16
fails 2 "bf9" train $quick --amp bf9

# on the CPU: every operator right, none of them left to the reference in a network; the same bits on any devices
if grep -q avx512_bf16 /proc/cpuinfo; then
    ok check --backend cpu --dtype bf16
    [ "$(awk 'NR > 1 && $3 != "native" { print $1 }' out | tr '\n' ' ')" = "softmax softmax_backward " ] ||
        { cat out; die "left to the reference in bf16"; }
    bits="train --data $matrix_data --model resnet20 --amp bf16 --shards 2 --threads-per-device 1 --epochs 1 --workers 0"
    ok $bits --devices cpu:0
    want=$(hash_of_out)
    for devices in "cpu:0-1" "cpu:0-1 --strategy dp" "cpu:0-1 --strategy pipeline" "cpu:0-1 --strategy mp" \
        "cpu:0-3 --strategy hybrid --mesh data=2,pipe=2"; do
        ok $bits --devices $devices
        same "$(hash_of_out)" "$want" "the weights in bf16 on $devices"
    done
else
    echo "bf16 on the CPU: not looked at, since this processor has none"
    fails 2 "this processor has no bfloat16 instructions" train $quick --amp bf16
fi

run="train --data $matrix_data --model lenet5 --backend reference --shards 2 --batch-size $(matrix_batch 128) --lr 0.05
    --workers 0 --print-freq 1"
ok $run --epochs 1 --output-dir plain
for amp in bf16 fp16; do
    ok $run --amp $amp --epochs 2 --output-dir $amp
    want=$(hash_of_out)
    ok $run --amp $amp --epochs 1 --output-dir $amp-first
    cmp -s $amp-first/last/model.safetensors plain/last/model.safetensors && die "--amp $amp does nothing"
    ok train --resume $amp-first --epochs 2
    same "$(hash_of_out)" "$want" "the weights of a resumed run with --amp $amp"
    ! grep -q warning err || { cat err; die "a warning, though nothing changed"; }
    has $amp/run.json "\"amp\": \"$amp\""
    ok eval --data $matrix_data --model lenet5 --weights $amp --backend reference --amp $amp
done

ok train --resume bf16 --epochs 3 --amp none
has err "this run goes on otherwise than it began: --amp none (was bf16)"

# float32 in the file: it has the size of the run without
same "$(wc -c <bf16/last/optimizer.safetensors)" "$(wc -c <plain/last/optimizer.safetensors)" "bytes of the optimiser"
ok eval --data $matrix_data --model lenet5 --weights bf16

has fp16/metrics.jsonl '"loss_scale":65536.0,"skipped":false'
! grep -q loss_scale bf16/metrics.jsonl plain/metrics.jsonl || die "a scale where nothing is scaled"
has fp16/last/state.json '"loss_scale": {'

# a scale that is far too large: updates are skipped until it fits, also where another run left it
sed 's/"scale": 65536.0/"scale": 268435456.0/' fp16-first/last/state.json >state
cp state fp16-first/last/state.json
fails 3 "fp16-first/last/state.json: is damaged: " train --resume fp16-first --epochs 3
rm fp16-first/last/manifest.json
ok train --resume fp16-first --epochs 3
has err "fp16-first/last has no manifest.json"
has fp16-first/metrics.jsonl '"skipped":true'
[ "$(grep -c '"skipped":false' fp16-first/metrics.jsonl)" -ge 20 ] || die "hardly any update was not skipped"
grep -q '"skipped_updates": [1-9]' fp16-first/last/state.json || die "skipped updates are not counted"
