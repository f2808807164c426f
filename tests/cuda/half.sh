# Operators with inputs of 16 bits: the plugin has kernels for all that may have them, and they are right.
. "$SOURCE/tests/cli/harness"
[ -f "$BUILD/fakecuda/libconvoy_cuda.so" ] || skip "the CUDA plugin was not built: there are no headers of CUDA and cuDNN"
export CONVOY_PLUGINS="$BUILD/fakecuda"

for type in bf16 f16; do
    ok check --backend cuda --dtype $type --tf32
    ok check --backend cuda --dtype $type
    has out conv2d_backward_weights
    ! awk 'NR > 1 && $3 != "native"' out | grep . || die "no kernel for $type"
    FAKECUDA_PRODUCTS=0 ok check --backend cuda --dtype $type
done
fails 2 "--dtype i64" check --backend cuda --dtype i64
