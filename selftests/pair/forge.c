// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A peer that means harm: messages of the connection manager that no kernel
 * would send, as packets of RoCEv2 with a good checksum.
 *
 *	forge [-n COUNT] [-t S] [-r PER-SECOND] [-s SEED] [-p PORT] KIND... FROM TO
 *
 * FROM is the address that the packets come from, which need not be this
 * machine's; TO is the victim, which listens on PORT. It sends COUNT packets, or
 * for S seconds, of the kinds in turn:
 *
 *	req		good requests, each from another queue pair
 *	patient		good requests that ask for an answer within hours
 *	sidr		good requests for datagrams
 *	odd-req		requests with some bytes changed
 *	wrong-port	requests for ports and services that nobody listens on
 *	unknown-id	REP, RTU, DREQ, REJ... for connections that there are not
 *	bad-attribute	attributes that there are not, methods, versions, classes
 *	noise		a header of the connection manager, the rest at random
 *	short		MADs that are cut off
 *	bad-packet	wrong checksums, keys, opcodes, paddings, lengths
 *	no-opcode	opcodes that there are not
 *	long		MADs that are too long
 *	replay		what this machine sends there, once more, and again later
 *	twist		the same with another attribute, or some bytes changed
 *
 * The seed is printed; the same one makes the same packets, but for the last two.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pair_util.h"

#define ROCE_PORT  4791
#define BTH	   12
#define DETH	   8
#define ICRC	   4
#define MAD	   256
#define CM_HDR	   24 /* of a MAD, before the message */
#define HEADERS	   (sizeof(struct iphdr) + sizeof(struct udphdr))
#define PACKET_MAX 2048
#define KEPT	   256 /* packets to replay */

/* IBTA 12.6: attributes */
enum { REQ = 0x10, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR };

struct packet {
	uint8_t bytes[PACKET_MAX];
	size_t len; /* of all */
};

static struct {
	uint32_t from, to;
	uint16_t port;
	int raw, tap;
	uint64_t random;
	unsigned long sent, serial;
	struct packet kept[KEPT];
	unsigned int kept_count, kept_next;
} f = { .port = 7171, .tap = -1 };

/* xorshift64: the same sequence everywhere */
static uint64_t next_random(void)
{
	f.random ^= f.random << 13;
	f.random ^= f.random >> 7;
	f.random ^= f.random << 17;
	return f.random;
}

static unsigned int below(unsigned int n)
{
	return (next_random() >> 16) % n;
}

static void fill_random(uint8_t *to, size_t len)
{
	while (len--)
		*to++ = next_random() >> 24;
}

static void put16(uint8_t *to, uint16_t value)
{
	to[0] = value >> 8;
	to[1] = value;
}

static void put24(uint8_t *to, uint32_t value)
{
	to[0] = value >> 16;
	put16(to + 1, value);
}

static void put32(uint8_t *to, uint32_t value)
{
	put16(to, value >> 16);
	put16(to + 2, value);
}

/*
 * The invariant CRC: over 8 bytes of ones for a header that RoCE has not, then
 * everything, with ones for what may change on the way.
 */
static uint32_t crc32_of(uint32_t crc, const uint8_t *data, size_t len)
{
	int i;

	while (len--) {
		crc ^= *data++;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

static void seal(struct packet *p)
{
	static const uint8_t ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
	uint8_t masked[HEADERS + BTH];
	uint32_t crc;
	size_t body = p->len - ICRC;

	memcpy(masked, p->bytes, sizeof(masked));
	masked[1] = 0xff;	      /* type of service */
	masked[8] = 0xff;	      /* time to live */
	memset(masked + 10, 0xff, 2); /* checksum */
	memset(masked + 26, 0xff, 2); /* UDP's checksum */
	masked[HEADERS + 4] = 0xff;   /* reserved byte of the BTH */
	crc = crc32_of(~0U, ones, sizeof(ones));
	crc = crc32_of(crc, masked, sizeof(masked));
	crc = ~crc32_of(crc, p->bytes + sizeof(masked), body - sizeof(masked));
	p->bytes[body] = crc;
	p->bytes[body + 1] = crc >> 8;
	p->bytes[body + 2] = crc >> 16;
	p->bytes[body + 3] = crc >> 24;
}

/* Headers of a packet for QP 1 with a payload of this many bytes */
static uint8_t *begin(struct packet *p, size_t payload)
{
	size_t pad = -payload & 3;
	struct iphdr *ip = (void *)p->bytes;
	struct udphdr *udp = (void *)(ip + 1);
	uint8_t *bth = (uint8_t *)(udp + 1);

	memset(p, 0, sizeof(*p));
	p->len = HEADERS + BTH + DETH + payload + pad + ICRC;
	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tot_len = htons(p->len),
		.id = htons(1 + below(65535)), /* 0 would be replaced */
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = f.from,
		.daddr = f.to,
	};
	udp->source = htons(0xc000 + below(0x4000));
	udp->dest = htons(ROCE_PORT);
	udp->len = htons(p->len - sizeof(*ip));
	bth[0] = 0x64; /* UD, send only */
	bth[1] = pad << 4;
	put16(bth + 2, 0xffff); /* default partition */
	put32(bth + 4, 1);	/* destination QP */
	put32(bth + 8, f.serial++ & 0xffffff);
	put32(bth + 12, 0x80010000); /* the key of QP 1 */
	put32(bth + 16, 1);	     /* source QP */
	return bth + BTH + DETH;
}

static uint8_t *mad_of(struct packet *p)
{
	return p->bytes + HEADERS + BTH + DETH;
}

static void emit(struct packet *p)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = f.to };

	if (sendto(f.raw, p->bytes, p->len, 0, (void *)&to, sizeof(to)) < 0) {
		if (errno != ENOBUFS && errno != EAGAIN && errno != EINVAL)
			die("sendto");
		return;
	}
	f.sent++;
}

/* A MAD of the connection manager; returns the message in it */
static uint8_t *begin_cm(struct packet *p, uint16_t attribute)
{
	uint8_t *mad = begin(p, MAD);

	mad[0] = 1; /* base version */
	mad[1] = 7; /* class */
	mad[2] = 2; /* its version */
	mad[3] = 3; /* send */
	fill_random(mad + 8, 8);
	put16(mad + 16, attribute);
	return mad + CM_HDR;
}

/* What rdma_cm puts before the user's private data */
static void put_cma_hdr(uint8_t *data)
{
	data[1] = 4 << 4;
	put16(data + 2, 20000 + below(10000));
	memcpy(data + 16, &f.from, 4);
	memcpy(data + 32, &f.to, 4);
}

static void put_service(uint8_t *to, uint16_t space, uint16_t port)
{
	put32(to, 0);
	put32(to + 4, (uint32_t)space << 16 | port);
}

static void put_gid(uint8_t *gid, uint32_t addr)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, &addr, 4);
}

/* A request that is as it should be, and answered within some 100 ms or never */
static uint8_t *begin_req(struct packet *p)
{
	uint8_t *req = begin_cm(p, REQ);

	fill_random(req, 4); /* its communication id */
	put_service(req + 8, 0x106, f.port);
	fill_random(req + 16, 8);	      /* CA GUID */
	put24(req + 32, 2 + below(0xfffff0)); /* QP */
	req[35] = 1;
	req[39] = 1;
	req[43] = 8 << 3;	  /* remote response timeout, RC */
	fill_random(req + 44, 3); /* PSN */
	req[47] = 8 << 3 | 7;	  /* local response timeout, retries */
	put16(req + 48, 0xffff);
	req[50] = 3 << 4 | 7; /* MTU, RNR retries */
	req[51] = 1 << 4;     /* retries of the CM */
	put16(req + 52, 0xffff);
	put16(req + 54, 0xffff);
	put_gid(req + 56, f.from);
	put_gid(req + 72, f.to);
	req[93] = 64;
	req[95] = 17 << 3;
	put_cma_hdr(req + 140);
	fill_random(req + 176, 56);
	return req;
}

static void change_bytes(uint8_t *where, size_t len)
{
	unsigned int n = 1 + below(12);

	while (n--)
		where[below(len)] = below(3) ? next_random() >> 24 : below(2) * 255;
}

static void make_sidr(struct packet *p)
{
	uint8_t *req = begin_cm(p, SIDR_REQ);

	fill_random(req, 4);
	put16(req + 4, 0xffff);
	put_service(req + 8, 0x111, f.port);
	put_cma_hdr(req + 16);
	fill_random(req + 52, 100);
}

static void make_wrong_port(struct packet *p)
{
	uint8_t *req = begin_req(p);

	switch (below(3)) {
	case 0:
		put_service(req + 8, 0x106, below(65536));
		break;
	case 1:
		put_service(req + 8, below(0x200), f.port);
		break;
	default:
		fill_random(req + 8, 8);
	}
}

static void make_unknown_id(struct packet *p)
{
	static const uint8_t attributes[] = { MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REP, LAP, APR };
	uint8_t *message = begin_cm(p, attributes[below(sizeof(attributes))]);

	fill_random(message, MAD - CM_HDR);
	if (!below(4))
		put32(message + 4, below(64));
	if (!below(4))
		memset(message, 0, 8);
}

static void make_bad_attribute(struct packet *p)
{
	uint8_t *mad;

	begin_req(p);
	mad = mad_of(p);
	switch (below(4)) {
	case 0:
		put16(mad + 16, next_random() >> 20);
		break;
	case 1:
		mad[3] = next_random() >> 24;
		break;
	case 2:
		mad[below(3)] = next_random() >> 24;
		break;
	default: /* other classes: SA, performance, vendor's with RMPP */
		mad[1] = (uint8_t[]){ 3, 4, 6, 9, 0x30, 0x4f, 0x81, 1 }[below(8)];
		mad[3] = next_random() >> 24;
		fill_random(mad + 16, 40);
	}
}

static void make_noise(struct packet *p)
{
	fill_random(begin_cm(p, REQ + below(11)), MAD - CM_HDR);
}

static void make_short(struct packet *p)
{
	struct packet whole;
	size_t len = below(MAD);
	uint8_t *mad;

	begin_req(&whole);
	mad = begin(p, len);
	memcpy(mad, mad_of(&whole), len);
}

/* IBTA 9.2: RC, UC, RD, UD have these, and each less than 32. */
static uint8_t opcode(bool exists)
{
	static const uint8_t last[] = { 0x17, 0x0b, 0, 0x05 };
	uint8_t op;

	for (;;) {
		op = next_random() >> 24;
		if (exists && op < 0x80 && op >> 5 != 2 && (op & 0x1f) <= last[op >> 5] &&
		    op != 0x15 && op >= (op >> 5 == 3 ? 0x64 : 0))
			return op;
		if (!exists && op >= 0xa0)
			return op;
	}
}

/* Returns false if the packet is to be sent as it is, without a good checksum */
static bool make_bad_packet(struct packet *p)
{
	uint8_t *bth;

	begin_req(p);
	bth = mad_of(p) - BTH - DETH;
	switch (below(8)) {
	case 0:
		bth[0] = opcode(true);
		break;
	case 1:
		bth[1] = next_random() >> 24; /* padding, header version */
		break;
	case 2:
		fill_random(bth + 2, 2); /* partition */
		break;
	case 3:
		put24(bth + 5, below(2) ? below(64) : next_random() >> 24); /* QP */
		break;
	case 4:
		fill_random(bth + BTH, 8); /* key, source QP */
		break;
	case 5: /* shorter than its headers */
		p->len = HEADERS + below(BTH + DETH + ICRC + 1);
		put16(p->bytes + 2, p->len);
		put16(p->bytes + 24, p->len - sizeof(struct iphdr));
		if (p->len < HEADERS + BTH + ICRC)
			return false;
		break;
	case 6: /* UDP's length is not the packet's */
		put16(p->bytes + 24, below(p->len));
		break;
	default:
		fill_random(p->bytes + p->len - ICRC, ICRC);
		return false;
	}
	return true;
}

/*
 * What this machine sends to the victim's QP 1. A copy is kept for later.
 */
static bool overhear(struct packet *p)
{
	ssize_t len;

	while ((len = recv(f.tap, p->bytes, sizeof(p->bytes), MSG_DONTWAIT)) > 0) {
		const struct iphdr *ip = (void *)p->bytes;
		const struct udphdr *udp = (void *)(ip + 1);
		const uint8_t *bth = (void *)(udp + 1);

		if ((size_t)len != HEADERS + BTH + DETH + MAD + ICRC || ip->daddr != f.to ||
		    ip->protocol != IPPROTO_UDP || udp->dest != htons(ROCE_PORT) ||
		    bth[0] != 0x64 || bth[7] != 1)
			continue;
		p->len = len;
		f.kept[f.kept_next++ % KEPT] = *p;
		if (f.kept_count < KEPT)
			f.kept_count++;
		return true;
	}
	return false;
}

static bool make_replay(struct packet *p)
{
	if (overhear(p))
		return true;
	if (!f.kept_count)
		return false;
	*p = f.kept[below(f.kept_count)];
	return true;
}

static bool make_twist(struct packet *p)
{
	uint8_t *mad = mad_of(p);

	if (!make_replay(p))
		return false;
	switch (below(3)) {
	case 0: /* another message about the same connection */
		put16(mad + 16, REQ + below(11));
		break;
	case 1: /* the same from another */
		change_bytes(mad + CM_HDR, 8);
		break;
	default:
		change_bytes(mad, MAD);
	}
	return true;
}

static void open_tap(void)
{
	f.tap = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	if (f.tap < 0)
		die("packet socket");
}

/* Makes one of this kind and sends it */
static bool forge(const char *kind)
{
	struct packet p;
	bool good = true;

	if (!strcmp(kind, "req")) {
		begin_req(&p);
	} else if (!strcmp(kind, "patient")) {
		uint8_t *req = begin_req(&p);

		req[43] = 31 << 3;
		req[47] = 31 << 3 | 7;
		req[51] = 15 << 4;
	} else if (!strcmp(kind, "sidr")) {
		make_sidr(&p);
	} else if (!strcmp(kind, "odd-req")) {
		change_bytes(begin_req(&p), MAD - CM_HDR);
	} else if (!strcmp(kind, "wrong-port")) {
		make_wrong_port(&p);
	} else if (!strcmp(kind, "unknown-id")) {
		make_unknown_id(&p);
	} else if (!strcmp(kind, "bad-attribute")) {
		make_bad_attribute(&p);
	} else if (!strcmp(kind, "noise")) {
		make_noise(&p);
	} else if (!strcmp(kind, "short")) {
		make_short(&p);
	} else if (!strcmp(kind, "long")) {
		begin(&p, MAD + 1 + below(1200));
	} else if (!strcmp(kind, "bad-packet")) {
		good = make_bad_packet(&p);
	} else if (!strcmp(kind, "no-opcode")) {
		begin_req(&p);
		(mad_of(&p) - BTH - DETH)[0] = opcode(false);
	} else if (!strcmp(kind, "replay") || !strcmp(kind, "twist")) {
		if (f.tap < 0)
			open_tap();
		if (*kind == 'r' ? !make_replay(&p) : !make_twist(&p))
			return true;
	} else {
		return false;
	}
	if (good)
		seal(&p);
	emit(&p);
	return true;
}

int main(int argc, char **argv)
{
	unsigned long count = 0, rate = 0, i;
	unsigned int seconds = 0;
	uint64_t begun, seed = now_ms();
	struct in_addr addr;
	int opt, kinds;

	while ((opt = getopt(argc, argv, "n:t:r:s:p:")) != -1) {
		switch (opt) {
		case 'n':
			count = strtoul(optarg, NULL, 0);
			break;
		case 't':
			seconds = atoi(optarg);
			break;
		case 'r':
			rate = strtoul(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'p':
			f.port = atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	kinds = argc - optind - 2;
	if (kinds < 1 || (!count && !seconds)) {
		fprintf(stderr, "forge (-n COUNT | -t S) KIND... FROM TO\n");
		return 2;
	}
	if (inet_pton(AF_INET, argv[argc - 2], &addr) != 1)
		die(argv[argc - 2]);
	f.from = addr.s_addr;
	if (inet_pton(AF_INET, argv[argc - 1], &addr) != 1)
		die(argv[argc - 1]);
	f.to = addr.s_addr;
	f.random = seed * 0x9e3779b97f4a7c15 | 1;
	f.raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	if (f.raw < 0)
		die("raw socket");

	begun = now_ms();
	for (i = 0; !count || f.sent < count; i++) {
		if (seconds && now_ms() - begun >= seconds * 1000ULL)
			break;
		if (!forge(argv[optind + i % kinds])) {
			fprintf(stderr, "no kind %s\n", argv[optind + i % kinds]);
			return 2;
		}
		while (rate && i * 1000 / rate > now_ms() - begun)
			usleep(1000);
	}
	printf("forged %lu packets in %llu ms, seed %llu\n", f.sent,
	       (unsigned long long)(now_ms() - begun), (unsigned long long)seed);
	return 0;
}
