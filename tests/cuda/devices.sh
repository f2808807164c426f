# What `convoy devices` and --devices cuda:0 say where GPUs are there, and one line where something is missing.
. "$SOURCE/tests/cli/harness"
[ -f "$BUILD/fakecuda/libconvoy_cuda.so" ] || skip "the CUDA plugin was not built: there are no headers of CUDA and cuDNN"
export CONVOY_PLUGINS="$BUILD/fakecuda"

# missing VARIABLE=VALUE TEXT: told in the list of devices, and by every command that wants a GPU.
missing() {
    export "$1"
    ok devices
    has out "not here: $2"
    fails 1 "$2" train $quick --devices cuda:0
    fails 1 "$2" check --backend cuda
    unset "${1%%=*}"
}

FAKECUDA_DEVICES=2 ok devices
has out "cuda:1: pretend GPU, compute capability 9.0"
! grep -q "cuDNN: " out || die "details without --verbose"
FAKECUDA_DEVICES=2 ok devices --verbose
for line in "memory: " "reaches: cuda:1" "driver: for CUDA" "cuDNN: 9." "cuBLASLt: " "NCCL: 2."; do has out "$line"; done
FAKECUDA_DEVICES=1 ok devices --json
has out '"reaches": "it is alone"'
FAKECUDA_DEVICES=2 fails 2 "there is no cuda:2" train $quick --devices cuda:2

missing FAKECUDA_DRIVER=0 "no NVIDIA driver is loaded"
missing FAKECUDA_DRIVER=12040 "the NVIDIA driver is too old: it knows CUDA 12.4"
missing FAKECUDA_CUDNN=8907 "cuDNN 8.9 does not fit: install cuDNN 9"
missing FAKECUDA_NCCL=10200 "NCCL 1.2 does not fit: install NCCL 2"
missing FAKECUDA_DEVICES=0 "there is no NVIDIA GPU"
missing FAKECUDA_DEVICES=none "GPUs cannot be used: FAKECUDA_DEVICES='none'" # any other error of CUDA: its text
