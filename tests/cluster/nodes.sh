# Two nodes with a cable between them: network namespaces and a veth pair, so that real TCP is crossed. The bits are
# those of one process; and when the cable is cut, all processes find out and say so.
. "$SOURCE/tests/cluster/harness"

[ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "there is no ip command"

export CVY_NODES=$$
a=cvy-$CVY_NODES-1 b=cvy-$CVY_NODES-2
take_down() { ip netns del "$a" 2>/dev/null; ip netns del "$b" 2>/dev/null; }
trap take_down EXIT
ip netns add "$a" 2>err || skip "no network namespaces here: $(cat err)"
ip netns add "$b"
ip link add name eth7 netns "$a" type veth peer name eth7 netns "$b" 2>err || skip "no veth here: $(cat err)"
for node in $a $b; do
    ip -n "$node" addr add 10.213.7."${node##*-}"/24 dev eth7
    ip -n "$node" link set lo up
    ip -n "$node" link set eth7 up
done
is_up() { ip -n "$1" link show eth7 | grep -q "state UP"; }
until is_up "$a" && is_up "$b"; do sleep 0.05; done

launcher() { # LIBRARY N: half of them on each node
    case $1 in
    openmpi)
        echo "ip netns exec $a unshare --uts mpirun.openmpi --oversubscribe --bind-to none -n $2" \
            "--host 10.213.7.1:$(($2 / 2)),10.213.7.2:$(($2 / 2)) --mca plm_rsh_agent $SOURCE/tests/cluster/remote_shell" \
            "--mca oob_tcp_if_include eth7 --mca btl_tcp_if_include eth7 --mca btl self,tcp -x CVY_NODES"
        ;;
    mpich)
        echo "ip netns exec $a unshare --uts mpirun.mpich -n $2 -ppn $(($2 / 2)) -hosts 10.213.7.1,10.213.7.2" \
            "-launcher rsh -launcher-exec $SOURCE/tests/cluster/remote_shell -iface eth7" \
            "-genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth7"
        ;;
    esac
}

run="train --data digits --model resnet20 --epochs 1 --shards 4 --threads-per-device 1 --workers 1 --devices cpu:0"

# train LIBRARY N: the bits of one process. MPICH over UCX's TCP does not always end: then Convoy leaves without it. And
# MPICH's launcher may return anything, a broken pipe of its own too, after rank 0 has said that all is done.
train() {
    # shellcheck disable=SC2046,SC2086  # words
    timeout 120 $(launcher $1 $2) "$CONVOY" $run >out 2>err </dev/null
    rc=$?
    [ $rc -eq 0 ] || { [ $1 = mpich ] && grep -q "^done: " out && ! grep -q "error: " err; } ||
        { cat out err; die "exit code $rc of $1, $2 processes"; }
    same "$(hash_of_out)" "$want" "$1, $2 processes on two nodes"
}

# shellcheck disable=SC2086  # words
ok $run
want=$(hash_of_out)
for library in $libraries; do
    train $library 2
    train $library 4 # two on each node
    echo "$library: two nodes"
done

lines train --data digits --model resnet20 --batch-size 64 --epochs 1000 --workers 1 --print-freq 1 --devices cpu:0 \
    --shards 4 --threads-per-device 1 --timeout 3 >args
for library in $libraries; do
    start "$library" 4
    until_training
    begun=$(now)
    ip -n "$b" link set eth7 down
    until_there 20 code.0 code.1 code.2 code.3
    took=$(($(now) - begun))
    ended_with 4 0 1 2 3
    says "rank [23] is lost" 0 1
    says "rank 0 is lost" 2 3
    [ $took -lt 4500 ] || die "$took ms until all knew"
    ip -n "$b" link set eth7 up
    nobody_left
    echo "$library: the cable cut: $took ms"
done
