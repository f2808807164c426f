# --model-ema: the average is judged beside the weights, saved with them, and goes on where it was.
. "$SOURCE/tests/cli/harness"

run="train $quick --lr-scheduler cosine --model-ema --model-ema-steps 2 --model-ema-decay 0.9999"
ok train $quick --lr-scheduler cosine --epochs 3 --output-dir plain
want=$(hash_of_out)
ok $run --epochs 3 --output-dir whole
same "$(hash_of_out)" "$want" "the weights, which the average does not touch"
has out "; averaged weights: loss "
cmp -s whole/last/model.safetensors whole/last/ema.safetensors && die "the average is the weights"
[ ! -e plain/last/ema.safetensors ] || die "an average that nobody asked for"
! grep -q ema_ plain/metrics.jsonl || die "metrics of an average that nobody asked for"

# what metrics.jsonl says of the average is what its file gives
ok eval --data digits --weights whole/last/ema.safetensors
top1=$(sed -n '$s/.*"ema_top1_count":\([0-9]*\).*/\1/p' whole/metrics.jsonl)
has out "$top1 of 360"

# stopped in the middle of an epoch
rm -f out err
"$CONVOY" $run --epochs 3 --print-freq 1 --output-dir part >out 2>err &
pid=$!
i=0
until grep -q "epoch 2/3, step 3" out; do
    i=$((i + 1))
    [ $i -lt 600 ] || die "no step after a minute"
    sleep 0.1
done
kill -INT $pid
wait $pid
ok train --resume part
for file in model.safetensors ema.safetensors; do
    cmp whole/last/$file part/last/$file || die "$file differs after a resume"
done

fails 2 "plain/last/ema.safetensors is not there" train --resume plain --epochs 4 --model-ema
fails 2 "model-ema-steps 0" train $quick --model-ema --model-ema-steps 0
