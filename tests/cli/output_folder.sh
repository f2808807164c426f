# An output folder belongs to one run: a second one is refused while the first goes on, and afterwards needs a word
# about what becomes of the first.
. "$SOURCE/tests/cli/harness"

ok train $quick --epochs 2 --output-dir run
cp -r run before
fails 2 "run holds a run already: --resume run goes on with it, --overwrite starts anew" \
    train $quick --epochs 1 --output-dir run
fails 2 "run holds a run already" train $quick --epochs 3 --resume before --output-dir run
fails 2 "--resume and --overwrite" train --resume run --overwrite
diff -r before run || die "a refused run changed something"

# a run that cannot start overwrites nothing
fails 3 "nowhere: No such file or directory" train $quick --epochs 1 --weights nowhere --output-dir run --overwrite
fails 1 "the loss is not finite" train $quick --epochs 1 --lr 1e30 --output-dir run --overwrite
diff -r before/last run/last || die "the old checkpoint is gone before there is a new one"
diff -r before/best run/best || die "the old best/ is gone before there is a new checkpoint"

ok train $quick --epochs 1 --seed 2 --output-dir run --overwrite
same "$(grep -c '"event":"epoch"' run/metrics.jsonl)" 1 "epochs in metrics.jsonl"
cmp run/last/model.safetensors run/best/model.safetensors || die "best/ is not of this run"

long="train $quick --data synthetic:1x8x8,classes=10,images=400000 --batch-size 8 --epochs 50 --print-freq 1"

# stopped in its first epoch, the new run has no best/ yet, and the old one's is not taken for it
rm -f out err
"$CONVOY" $long --output-dir run --overwrite >out 2>err &
pid=$!
i=0
until grep -q "epoch 1/50, step 3/" out; do
    i=$((i + 1))
    [ $i -lt 600 ] || die "no step after a minute"
    sleep 0.1
done
fails 1 "another run (pid $pid) writes to run" train --resume run
kill -0 $pid || die "the first run ended"
kill -INT $pid
wait $pid
same $? 130 "exit code after Ctrl-C"
[ ! -e run/best ] || die "best/ of the overwritten run is there still"

# a killed run holds nothing any more; one without a checkpoint can only be overwritten
rm -f out err
"$CONVOY" $long --output-dir killed >out 2>err &
pid=$!
i=0
until grep -q "epoch 1/50, step 3/" out; do
    i=$((i + 1))
    [ $i -lt 600 ] || die "no step after a minute"
    sleep 0.1
done
kill -9 $pid
wait $pid 2>/dev/null
fails 2 "killed holds a run already, without a checkpoint to go on from: --overwrite" train $quick --output-dir killed
ok train $quick --epochs 1 --output-dir killed --overwrite
