# Where the shards run never changes the result: every strategy, on any devices, ends with the same weights, the same
# optimiser state and the same metrics, bit for bit. And what cannot work is refused with what would.
. "$SOURCE/tests/cli/harness"

# run NAME ARGUMENTS…: two epochs with batch-norm, momentum, random crops and a smaller last batch
# (digits are 22 batches of 64, and 29), into the folder NAME.
run() {
    name=$1
    shift
    ok train --data $matrix_data --threads-per-device 1 --batch-size 64 --epochs 2 --pad 1 --seed 7 --workers 1 \
        --print-freq 4 --output-dir "$name" "$@"
    # all that a run measures but its times
    sed 's/"\(images_per_s\|train_s\|val_s\)":[^,}]*,*//g' "$name/metrics.jsonl" >"$name/metrics"
    [ "$(wc -l <"$name/metrics")" -eq "$(wc -l <"$name/metrics.jsonl")" ] && grep -q '"val_loss":[0-9]' "$name/metrics" ||
        die "no metrics of $name"
}

# alike WANT NAME ARGUMENTS…: a run that must equal the run WANT.
alike() {
    want=$1 name=$2
    shift 2
    run "$name" "$@"
    for file in last/model.safetensors last/optimizer.safetensors last/state.json metrics; do
        cmp "$want/$file" "$name/$file" || die "$file of $name is not that of $want"
    done
    rm -r "$name"
    echo "$want = $name"
}

differ() { ! cmp -s "$1/last/model.safetensors" "$2/last/model.safetensors" || die "$1 and $2 are equal: $3"; }

single="--strategy single --devices cpu:0"

# ---- S = 8, all strategies -----------------------------------------------------------------------------------

eight="--model resnet20 --shards 8"
run single $eight $single
alike single single-again $eight $single
counts="2 4" numbers="3 5" # sanitizers see in one of them what they see in both
[ -z "${SANITIZE:-}" ] || { counts=4 && numbers=3; }
for n in $counts; do
    alike single dp-$n $eight --strategy dp --devices cpu:0-$((n - 1))
    for schedule in gpipe 1f1b; do
        alike single $schedule-$n $eight --strategy pipeline --schedule $schedule --devices cpu:0-$((n - 1))
    done
done
for n in $counts 8; do
    alike single ddp-$n $eight --strategy ddp --devices cpu:0-$((n - 1))
done
alike single mp-2 $eight --strategy mp --devices cpu:0-1
alike single hybrid-2x2 $eight --strategy hybrid --mesh data=2,pipe=2 --devices cpu:0-3
alike single hybrid-4x2 $eight --strategy hybrid --mesh data=4,pipe=2 --devices cpu:0-7
alike single hybrid-2x2-gpipe $eight --strategy hybrid --mesh data=2,pipe=2 --devices cpu:0-3 --schedule gpipe
alike single buckets $eight --strategy ddp --devices cpu:0-1 --bucket-mb 0.05 --first-bucket-mb 0.01
run other-seed $eight $single --seed 8
differ single other-seed "the comparison says nothing"

# ---- S that no power of two divides, S below the number of stages ----------------------------------------------

for shards in $numbers; do
    some="--model resnet20 --shards $shards"
    run single-$shards $some $single
    differ single single-$shards "S plays no part"
    alike single-$shards ddp-$shards-of-2 $some --strategy ddp --devices cpu:0-1
    alike single-$shards dp-$shards-of-3 $some --strategy dp --devices cpu:0-2
    alike single-$shards 1f1b-$shards-on-4 $some --strategy pipeline --devices cpu:0-3
    alike single-$shards gpipe-$shards-on-4 $some --strategy pipeline --devices cpu:0-3 --schedule gpipe
    alike single-$shards hybrid-$shards $some --strategy hybrid --mesh data=2,pipe=2 --devices cpu:0-3
done

# ---- Winograd, on channels that are wide enough for it ------------------------------------------------------------

wide="--model resnet18_cifar --data synthetic:3x16x16,classes=10,images=150 --shards 4 --epochs 1 --opt adamw --lr 1e-3"
run direct $wide $single --conv-algo direct
run winograd $wide $single --conv-algo winograd
differ direct winograd "Winograd is not in use"
alike winograd winograd-ddp $wide --conv-algo winograd --strategy ddp --devices cpu:0-1
alike winograd winograd-pipeline $wide --conv-algo winograd --strategy pipeline --devices cpu:0-1

# ---- the optimisers, and each under another strategy from its second epoch on ---------------------------------------

for opt in adam rmsprop; do
    some="--model lenet5 --shards 4 --opt $opt --lr 1e-3 --weight-decay 0.01"
    run $opt $some $single
    alike $opt $opt-ddp $some --strategy ddp --devices cpu:0-1
    alike $opt $opt-dp $some --strategy dp --devices cpu:0-2
    alike $opt $opt-mp $some --strategy mp --devices cpu:0-1
    alike $opt $opt-pipeline $some --strategy pipeline --devices cpu:0-2
    alike $opt $opt-hybrid $some --strategy hybrid --mesh data=2,pipe=2 --devices cpu:0-3
    run $opt-moved $some --strategy ddp --devices cpu:0-1 --epochs 1
    ok train --resume $opt-moved --epochs 2 --strategy pipeline --devices cpu:0-2
    for file in model optimizer; do
        cmp $opt/last/$file.safetensors $opt-moved/last/$file.safetensors || die "$opt: a move changes $file"
    done
done
differ adam rmsprop "--opt is not in use"

# ---- 64 devices ----------------------------------------------------------------------------------------------------

many="--model lenet5 --shards 64"
run one $many $single
alike one ddp-64 $many --strategy ddp --devices cpu:0-63
alike one hybrid-32x2 $many --strategy hybrid --mesh data=32,pipe=2 --devices cpu:0-63

# ---- a run that goes on under another strategy: S and T are the checkpoint's ------------------------------------------

train="train --data $matrix_data --model resnet20 --batch-size 64 --pad 1 --seed 7 --workers 1 --print-freq 1000"
ok $train --shards 8 --threads-per-device 1 --epochs 1 --strategy ddp --devices cpu:0-1 --output-dir moved
ok $train --epochs 2 --strategy pipeline --devices cpu:0-2 --resume moved --output-dir moved
has out "S=8 T=1"
for file in model optimizer; do
    cmp single/last/$file.safetensors moved/last/$file.safetensors || die "a move to another strategy changes $file"
done

# ---- what cannot work, and what would ----------------------------------------------------------------------------------

train="train $quick"
fails 2 "single runs on one device, not on 2: name one, or take --strategy ddp" $train --strategy single \
    --devices cpu:0-1
fails 2 "--mesh data=2,pipe=2 goes with --strategy hybrid" $train --strategy ddp --devices cpu:0-3 \
    --mesh data=2,pipe=2
fails 2 "needs a mesh of its 6 devices: --mesh data=3,pipe=2" $train --strategy hybrid --devices cpu:0-5
fails 2 "needs a mesh of its 5 devices: --mesh data=1,pipe=5" $train --strategy hybrid --devices cpu:0-4
fails 2 "has 6 places for 4 devices: take --mesh data=2,pipe=2, or 6 devices" $train --strategy hybrid \
    --devices cpu:0-3 --mesh data=3,pipe=2
fails 2 "write data=D,pipe=P, here data=2,pipe=2" $train --strategy hybrid --devices cpu:0-3 --mesh 2x2
fails 2 "take --strategy single" $train --strategy mp
fails 2 "take --strategy single" $train --strategy pipeline
fails 2 "31 stages for a model of 14 operators: take at most 14 devices" $train --strategy pipeline \
    --devices cpu:0-30
fails 2 "raise --shards to 4 or more" $train --strategy ddp --devices cpu:0-3 --shards 3
fails 2 "raise --shards to 4 or more" $train --strategy dp --devices cpu:0-3 --shards 3
fails 2 "raise --shards to 3 or more" $train --strategy hybrid --mesh data=3,pipe=1 --devices cpu:0-2 --shards 2
fails 2 "--schedule gpipe goes with --strategy pipeline and hybrid" $train --strategy ddp --devices cpu:0-1 \
    --schedule gpipe
fails 2 "--schedule 1f1b goes with --strategy pipeline and hybrid" $train --strategy mp --devices cpu:0-1 \
    --schedule 1f1b
fails 2 "did you mean pipeline?" $train --strategy pipline --devices cpu:0-1
fails 2 "did you mean gpipe?" $train --strategy pipeline --devices cpu:0-1 --schedule gpip
