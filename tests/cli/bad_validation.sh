# An evaluation that fails does not cost the epoch before it: that is saved first, and a resume goes on with its evaluation,
# to the same bits.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images
train="train --data folder:set --model lenet5 --input 3x16x16 --resize 20 --crop 16x16 --flip --batch-size 6 --epochs 2 --shards 2
    --threads-per-device 1 --lr 0.01 --model-ema --model-ema-steps 1"

for split in train val; do
    for class in ant bee; do
        mkdir -p set/$split/$class
        cp "$images"/*.png set/$split/$class
    done
done
ok $train --output-dir whole
whole=$(hash_of_out)

mv set/val/ant/rgb.png kept.png
head -c 90 kept.png >set/val/ant/rgb.png
fails 3 "set/val/ant/rgb.png" $train --output-dir run
has err "epoch 1 is trained and in run/last: a resume goes on with its evaluation"
[ ! -e run/best ] || die "an epoch that was not evaluated is the best"
fails 3 "set/val/ant/rgb.png" train --resume run
has out "going on with the evaluation of epoch 1"
cp kept.png set/val/ant/rgb.png
ok train --resume run --devices cpu:0-1
has out "going on with the evaluation of epoch 1"
same "$(hash_of_out)" "$whole" "the weights of a run whose evaluation failed"
for file in whole run; do
    sed 's/"\(images_per_s\|train_s\|val_s\)":[^,}]*,*//g' $file/metrics.jsonl >$file.metrics
done
cmp whole.metrics run.metrics || die "other metrics"
cmp whole/best/model.safetensors run/best/model.safetensors || die "another best"
no_leftovers run
