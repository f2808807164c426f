# One run as several processes: the weights, the optimiser's state and the metrics of a single process, bit for bit.
. "$SOURCE/tests/cluster/harness"

run="train --data $matrix_data --threads-per-device 1 --batch-size 64 --epochs 2 --pad 1 --seed 7 --workers 1 --print-freq 4
    --model resnet20 --shards 8"

measured() { sed 's/"\(images_per_s\|train_s\|val_s\)":[^,}]*,*//g' "$1/metrics.jsonl" >"$1/metrics"; }

# shellcheck disable=SC2086  # words
ok $run --strategy single --devices cpu:0 --output-dir single
measured single
want=$(hash_of_out)

# alike LIBRARY N ARGUMENTS…
alike() {
    library=$1 n=$2
    shift 2
    # shellcheck disable=SC2086  # words
    together "$library" "$n" $run --output-dir many "$@"
    same "$(hash_of_out)" "$want" "$library, $n processes, $*"
    measured many
    for file in last/model.safetensors last/optimizer.safetensors last/state.json metrics; do
        cmp single/$file many/$file || die "$file of $library, $n processes, $* is not that of one"
    done
    [ "$(grep -c '^done:' out)" -eq 1 ] || die "not one process speaks for all"
    rm -r many
    echo "$library: $n processes, $*"
}

for library in $libraries; do
    alike $library 2 --devices cpu:0
    alike $library 4 --devices cpu:0
    alike $library 2 --devices cpu:0-1
    alike $library 2 --devices cpu:0 --strategy pipeline
    alike $library 2 --devices cpu:0 --strategy mp
    alike $library 2 --devices cpu:0-1 --strategy pipeline --schedule gpipe
    alike $library 4 --devices cpu:0 --strategy hybrid --mesh data=2,pipe=2
    alike $library 2 --devices cpu:0-1 --strategy hybrid --mesh data=2,pipe=2
done
# Batch-norm over all shards, and updates of several batches.
more="--epochs 1 --sync-bn --accumulate 3"
# shellcheck disable=SC2086  # words
ok $run $more --devices cpu:0 --strategy single
want_more=$(hash_of_out)
for library in $libraries; do
    # shellcheck disable=SC2086
    together $library 2 $run $more --devices cpu:0-1
    same "$(hash_of_out)" "$want_more" "$library, 2 processes, $more"
done

# shellcheck disable=SC2086
together "${libraries##* }" 2 $run --devices cpu:0 --epochs 1 --output-dir moved
ok train --resume moved --epochs 2 --strategy pipeline --devices cpu:0-1
same "$(hash_of_out)" "$want" "a run that goes on in one process"
together "${libraries##* }" 2 eval --weights single --data $matrix_data --devices cpu:0
mv out many
ok eval --weights single --data $matrix_data --devices cpu:0
[ "$(sed -n 's/, [0-9]* images.s$//p' out | grep top-1)" = "$(sed -n 's/, [0-9]* images.s$//p' many | grep top-1)" ] ||
    die "eval says something else in two processes"


# What one process alone can do.
library=${libraries##* }
# shellcheck disable=SC2046,SC2086  # words
timeout 60 $(launcher "$library" 2) "$CONVOY" $run --strategy dp --devices cpu:0 >out 2>err </dev/null &&
    die "dp ran in two processes"
has err "strategy dp keeps the parameters on a device of one process"
