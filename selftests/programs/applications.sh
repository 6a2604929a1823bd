#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 400
#
# Whoever else in the distribution connects through librdmacm: fio, qperf, libfabric, UCX, DAT, a
# virtual machine's migration, Python. (tgt is left out: its package starts a server.)

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

# until_ready COMMAND...: for half a minute.
until_ready() {
	local i
	for ((i = 0; i < 60 * SLOW; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.5
	done
	echo "not ready: $*" >>"$WORK/server.log"
	return 1
}

tcp_listens() {
	ss -Hltn "sport = :$1" | grep -q .
}

rdma_listens() {
	rdma resource show cm_id | grep -q "state LISTEN"
}

# background COMMAND...: a server that start_server cannot tell is ready.
background() {
	(with_library "$@") >"$WORK/server.log" 2>&1 &
	SERVER_PID=$!
}

# fio's server goes on listening when its client has gone.
fio_rdma() {
	local code=0
	cat >"$WORK/server.fio" <<-EOF
		[receiver]
		ioengine=rdma
		port=5555
		rw=read
		bs=16k
		size=1m
		iodepth=4
	EOF
	sed "s/receiver/sender/; s/rw=read/rw=write/; \$a hostname=$MY_IP\nverb=$1" \
		"$WORK/server.fio" >"$WORK/client.fio"
	start_server fio "$WORK/server.fio" && client fio "$WORK/client.fio" || code=1
	grep -q "io=1024KiB" "$WORK/client.log" || code=1
	finish "$code"
}

qperf_cm() {
	local code=0
	background qperf
	until_ready tcp_listens 19765 && client qperf "$MY_IP" -cm1 -t 1 "$@" || code=1
	finish "$code"
}

# Its two ends first talk over TCP.
fabric() {
	local code=0
	background fi_pingpong -p verbs -e "$1" -I 20 -S 64
	until_ready tcp_listens 47592 &&
		client fi_pingpong -p verbs -e "$1" -I 20 -S 64 "$MY_IP" && wait_server || code=1
	finish "$code"
}

ucx() {
	local code=0
	export UCX_TLS=rc,ud,self UCX_NET_DEVICES=rxe0:1 UCX_SOCKADDR_TLS_PRIORITY=rdmacm
	start_server io_demo -p 1337 && client io_demo -p 1337 -i 50 -d 4096 -t 20 "$MY_IP" || code=1
	grep -q "exit with status 'OK'" "$WORK/client.log" || code=1
	finish "$code"
}

# A thousand connections, one after the other. Its ports are from 45248 on, among those which the
# system gives to whoever asks for any, as its own library does.
dat() {
	local code=0 range=/proc/sys/net/ipv4/ip_local_port_range any
	any=$(<"$range")
	echo 50000 60999 >"$range"
	export DAT_OVERRIDE=$WORK/dat.conf
	echo 'ofa-v2-d0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "d0 0" ""' >"$DAT_OVERRIDE"
	start_server dtestcm -P ofa-v2-d0 &&
		client dtestcm -P ofa-v2-d0 -h "$MY_IP" && wait_server || code=1
	echo "$any" >"$range"
	finish "$code"
}

# monitor COMMAND...: to QEMU, a line each, with time between them.
monitor() {
	local line
	for line; do
		echo "$line"
		sleep $((4 * SLOW))
	done
}

migration_done() {
	grep -qa "Migration status: completed" "$WORK/client.log"
}

migration() {
	local code=0 i vm=(qemu-system-x86_64 -M pc -m 16 -display none -nodefaults -monitor stdio)
	mkfifo "$WORK/in"
	(with_library "${vm[@]}" -S -incoming "rdma:$MY_IP:4444" <"$WORK/in") >"$WORK/server.log" 2>&1 &
	SERVER_PID=$!
	exec {keep}>"$WORK/in"
	until_ready rdma_listens || code=1
	{
		sleep 2
		echo "migrate rdma:$MY_IP:4444"
		for ((i = 0; i < 12 * SLOW; i++)); do
			monitor "info migrate"
			! migration_done || break
		done
		echo quit
	} | client "${vm[@]}" || code=1
	migration_done || code=1
	exec {keep}>&-
	finish "$code"
}

python() {
	cat >"$WORK/test.py" <<-'EOF'
		import sys
		from pyverbs.cmid import AddrInfo, CMEvent, CMEventChannel, CMID, ConnParam
		from pyverbs.cm_enums import RAI_PASSIVE, RDMA_PS_TCP
		from pyverbs.enums import IBV_QPT_RC
		from pyverbs.qp import QPCap, QPInitAttr

		role, host, port = sys.argv[1], sys.argv[2], '7471'
		attributes = QPInitAttr(qp_type=IBV_QPT_RC, cap=QPCap(max_recv_wr=4, max_send_wr=4,
		                                                      max_recv_sge=1, max_send_sge=1))

		def talk(id, begin, says, hears):
		    send, recv = id.reg_msgs(64), id.reg_msgs(64)
		    id.post_recv(recv)
		    begin(ConnParam(resources=1, depth=1))
		    send.write(says, 5)
		    id.post_send(send)
		    id.get_send_comp()
		    id.get_recv_comp()
		    assert recv.read(5, 0).decode() == hears
		    id.disconnect()
		    id.close()

		if role == 'server':
		    listener = CMID(creator=AddrInfo(src=host, src_service=port, port_space=RDMA_PS_TCP,
		                                     flags=RAI_PASSIVE), qp_init_attr=attributes)
		    listener.listen()
		    id = listener.get_request()
		    talk(id, id.accept, 'world', 'hello')
		    listener.close()
		    sys.exit()

		address = AddrInfo(src=None, dst=host, dst_service=port, port_space=RDMA_PS_TCP)
		id = CMID(creator=address, qp_init_attr=attributes)
		talk(id, id.connect, 'hello', 'world')

		channel = CMEventChannel()
		id = CMID(creator=channel)
		for start, expected in ((id.resolve_addr, 'RDMA_CM_EVENT_ADDR_RESOLVED'),
		                        (id.resolve_route, 'RDMA_CM_EVENT_ROUTE_RESOLVED')):
		    start(*([address, 2000] if start == id.resolve_addr else [2000]))
		    event = CMEvent(channel)
		    assert event.event_str() == expected
		    event.ack_cm_event()
		id.close()
		channel.close()
	EOF
	both python3 "$WORK/test.py" server "$MY_IP" -- python3 "$WORK/test.py" client "$MY_IP"
}

# "send" runs out of receive buffers, on librdmacm too.
for verb in write read; do
	ktap_test "fio, $verb" fio_rdma $verb
done
ktap_test "qperf -cm1" qperf_cm rc_lat rc_rdma_write_lat
ktap_test "libfabric, connected" fabric msg
ktap_test "libfabric, datagrams" fabric dgram
ktap_test "UCX" ucx
ktap_test "DAT" dat
ktap_test "QEMU's migration" migration
ktap_test "pyverbs" python
ktap_end
