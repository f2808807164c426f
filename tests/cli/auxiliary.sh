# GoogLeNet's auxiliary heads: the same bits by every strategy, in checkpoints, new with --replace-head, frozen by name.
. "$SOURCE/tests/cli/harness"

train="train --model googlenet --data synthetic:3x31x31,classes=4,images=8 --batch-size 8 --shards 4 --threads-per-device 1
    --epochs 1 --lr 0.01 --seed 3"
ok $train --output-dir run
want=$(hash_of_out) || exit 1
grep -q 'aux2.fc2.weight' run/last/model.safetensors || die "the heads are not in the checkpoint"
if [ -z "${SANITIZE:-}" ]; then
    ok $train --devices cpu:0-2 --strategy pipeline
    same "$(hash_of_out)" "$want" "pipeline"
fi
ok eval --weights run --data synthetic:3x31x31,classes=4,images=8
ok explain --model googlenet --freeze 'conv*,inception*,aux*'
fails 3 "holds a model of 4 classes, not 6" $train --weights run --num-classes 6
ok $train --weights run --num-classes 6 --replace-head --freeze 'conv*,inception*'
has err "aux1.fc2.weight f32[4,1024] by f32[6,1024]"
