# --check-sync and --on-nan: what they watch leaves the weights as they are; what they find ends the run, or an update.
. "$SOURCE/tests/cli/harness"

train="train $quick --epochs 1"

ok $train
good=$(hash_of_out)
ok $train --check-sync 3 --on-nan stop
same "$(hash_of_out)" "$good" "watched weights"
ok $train --on-nan skip --devices cpu:0-1 --strategy ddp --check-sync 1
same "$(hash_of_out)" "$good" "watched weights of two devices"
! grep -q 'left out' err || { cat err; die "updates of a good run were left out"; }

# a rate that ruins the weights at once: each update after it is left out, until it is enough
fails 1 'the loss is' $train --epochs 30 --lr 1e30
fails 1 'number 100 in a row that is left out' $train --batch-size 8 --lr 1e30 --on-nan skip
# or a whole epoch; what is not a number is never the best
fails 1 'epoch 2: every update was left out' $train --epochs 30 --lr 1e30 --on-nan skip --output-dir run
has err 'update left out: step 1: the loss is not finite'
has err 'epoch 1: 11 of 12 updates were left out (--on-nan)'
grep -q '"skipped":true' run/metrics.jsonl || die "metrics.jsonl does not say what was skipped"
grep -q '"epoch": *1,' run/last/state.json && [ ! -e run/best ] || die "what was saved before is not as it was"

fails 2 'there is no such on-nan' $train --on-nan hope
fails 2 'must be from 0' $train --check-sync -1

# of several processes, the slowest; all come to the same
for library in openmpi mpich; do
    [ -e "$BUILD/libconvoy_mpi_$library.so" ] || continue
    "$SOURCE/tests/with_mpirun" $library 2 "$CONVOY" $train --on-nan skip --check-sync 2 >out 2>err
    rc=$?
    [ $rc -ne 77 ] || continue
    [ $rc -eq 0 ] || { cat out err; die "exit code $rc with $library"; }
    same "$(hash_of_out)" "$good" "watched weights of two processes"
    grep -q 'epoch 1: slowest: device [01] of rank [01], which waited .* others waited up to ' err ||
        { cat err; die "nobody is slowest"; }
    "$SOURCE/tests/with_mpirun" $library 2 "$CONVOY" $train --epochs 30 --lr 1e30 --on-nan skip >out 2>err
    same $? 1 "the exit code of two processes without a good update"
    has err 'epoch 2: every update was left out'
done
