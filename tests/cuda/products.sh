# Convolutions and products that the libraries refuse run by functions of our own: the same sums, and the same training.
. "$SOURCE/tests/cli/harness"
[ -f "$BUILD/fakecuda/libconvoy_cuda.so" ] || skip "the CUDA plugin was not built: there are no headers of CUDA and cuDNN"
export CONVOY_PLUGINS="$BUILD/fakecuda"

loss() { sed -n 's/^epoch 1.*training loss \([0-9.]*\),.*/\1/p' out; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && d * d < 1e-6 * a * a) }'; }

# three steps at a small rate: what rounds differently has not grown yet
train="train --data digits --model lenet5 --shards 2 --threads-per-device 1 --batch-size 512 --lr 0.005 --epochs 1"
ok $train --devices cpu:0
cpu=$(loss)
ok $train --devices cuda:0
cudnn=$(loss)
! grep -q "slow function" err || die "said without a reason: $(cat err)"
FAKECUDA_PRODUCTS=0 ok $train --devices cuda:0
own=$(loss)
[ "$(grep -c "cuda:0: cuDNN has no deterministic algorithm for a call of conv2d.*slow" err)" -eq 1 ] ||
    { cat err; die "not said once"; }
near "$cpu" "$cudnn" || die "losses: cpu $cpu, cuda $cudnn"
near "$cpu" "$own" || die "losses: cpu $cpu, cuda by own functions $own"

FAKECUDA_PRODUCTS=0 ok check --backend cuda
ok check --backend cuda --tf32
ok check --backend cuda --nondeterministic
ok $train --devices cuda:0 --nondeterministic
fastest=$(loss)
near "$cpu" "$fastest" || die "losses: cpu $cpu, cuda --nondeterministic $fastest"
