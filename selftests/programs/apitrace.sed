# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Where ours answers differently from librdmacm, on purpose: see Documentation/migration.rst.

# rdma_create_ep() resolves in one step, and leaves no event.
/^create_ep .* w[a-zA-Z ]* verbs /s/ event RDMA_CM_EVENT_ROUTE_RESOLVED$/ event NULL/
/^odd infos: .* verbs /s/ event RDMA_CM_EVENT_ROUTE_RESOLVED$/ event NULL/
/^sync .*: active verbs /s/ event RDMA_CM_EVENT_ROUTE_RESOLVED$/ event NULL/
/^sync .*: active RDMA_CM_EVENT_ROUTE_RESOLVED/d

# Accepting a datagram request acknowledges it.
/^sync UDP: server verbs /s/ event RDMA_CM_EVENT_CONNECT_REQUEST$/ event NULL/
/^sync UDP: server RDMA_CM_EVENT_CONNECT_REQUEST/d

# Private data that is too long is refused, and the request can still be answered.
/^data 106 accept \(197\|22[45]\|255\): client /d
/^data 111 accept \(137\|14[89]\|179\|18[01]\|19[67]\|22[45]\|255\): client /d

# A local ACK timeout has five bits.
s/^\(options: timeout \(45\|60\|75\|90\|[12][0-9][0-9]\)\) = 0$/\1 = -1 EINVAL/

# A completion queue that the library made beside one of the program's goes with the QP.
/^queues .*: recv_cq, destroyed: /s/send_cq_channel some send_cq some/send_cq_channel NULL send_cq NULL/

# Ids can be destroyed after their channel.
s/^\(channel first: rdma_destroy_id(.*\) = -1 EBADF$/\1 = 0/

# Another step is under way.
s/^\([TU].* connecting: \(resolve\|connect\).*\) = -1 EINVAL$/\1 = -1 EBUSY/
