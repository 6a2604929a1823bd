// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep doctor: what keeps RDMA connections from working on this machine,
 * and what to do about it. It only looks: from the module, which it has loaded as
 * any program has, up to the library that a program would load.
 *
 * Each finding is a line: what was looked at, a verdict, what was found; and
 * below it, when something is wrong, what to do. "fail" counts as a problem,
 * "warn" may be meant that way, "note" is for information.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <link.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <json-c/json.h>
#include <rdma/rdma_ep.h>

#include "path.h"
#include "tool.h"

enum verdict {
	OK,
	NOTE,
	WARN,
	FAIL,
};

static int problems;
static int warnings;
static struct json_object *findings;	/* NULL: print text */

__attribute__((format(printf, 3, 4)))
static void report(const char *what, enum verdict verdict, const char *fmt, ...)
{
	static const char *const word[] = { "ok", "note", "WARN", "FAIL" };
	struct json_object *finding;
	char text[PATH_MAX + 256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	problems += verdict == FAIL;
	warnings += verdict == WARN;
	if (!findings) {
		printf("%-10s %-4s  %s\n", what, word[verdict], text);
		return;
	}
	finding = json_object_new_object();
	json_object_object_add(finding, "what", json_object_new_string(what));
	json_object_object_add(finding, "verdict", json_object_new_string(word[verdict]));
	json_object_object_add(finding, "found", json_object_new_string(text));
	json_object_array_add(findings, finding);
}

/* The last finding's "todo" gets one more line. */
static void advise_json(const char *text)
{
	struct json_object *finding, *todo;

	finding = json_object_array_get_idx(findings, json_object_array_length(findings) - 1);
	if (!json_object_object_get_ex(finding, "todo", &todo)) {
		todo = json_object_new_array();
		json_object_object_add(finding, "todo", todo);
	}
	json_object_array_add(todo, json_object_new_string(text));
}

__attribute__((format(printf, 1, 2)))
static void advise(const char *fmt, ...)
{
	char text[PATH_MAX + 256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (findings)
		advise_json(text);
	else
		printf("%-15s-> %s\n", "", text);
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

/* The first line of a file in sysfs. False if it cannot be read. */
__attribute__((format(printf, 3, 4)))
static bool read_line(char *line, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	ssize_t n;
	int fd;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, line, size - 1);
	close(fd);
	if (n < 0)
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* Where the module of this kernel is. False: nowhere. */
static bool installed_module(char *path, size_t size)
{
	FILE *f = popen("PATH=$PATH:/usr/sbin:/sbin modinfo -n rdma_ep 2>/dev/null",
			"re");
	bool found;

	if (!f)
		return false;
	found = fgets(path, size, f);
	pclose(f);
	path[found ? strcspn(path, "\n") : 0] = '\0';
	return found;
}

static void check_module(void)
{
	char version[64] = "of an unknown version", path[PATH_MAX];
	bool loaded = exists("/sys/module/rdma_ep");

	tool_load_module();
	if (exists("/sys/module/rdma_ep")) {
		read_line(version, sizeof(version), "/sys/module/rdma_ep/version");
		report("module", OK, "rdma_ep %s is loaded%s", version,
		       loaded ? "" : ", since a moment ago");
	} else if (installed_module(path, sizeof(path))) {
		report("module", FAIL, "rdma_ep is not loaded, though %s is there", path);
		advise("modprobe rdma_ep says why not; if its key was rejected, Secure Boot");
		advise("wants it enrolled, DKMS's by mokutil --import /var/lib/dkms/mok.pub");
	} else {
		report("module", FAIL, "rdma_ep is not loaded, nor installed for this kernel");
		advise("with packages: dkms status; are the kernel's headers installed?");
		advise("in the source tree: modprobe -a rdma_cm ib_uverbs, then insmod the");
		advise("rdma_ep.ko that was built for this kernel");
	}
}

/* Can this process open @path? Says what to do if it cannot. */
static bool check_node(const char *what, const char *path, const char *dev)
{
	unsigned int major, minor;
	struct stat st;
	int fd;

	if (stat(path, &st)) {
		report(what, FAIL, "%s: %s", path, strerror(errno));
		if (sscanf(dev, "%u:%u", &major, &minor) != 2) {
			advise("the kernel has no such device: see the lines about modules");
			return false;
		}
		advise("udev has not made it (mknod %s c %u %u),", path, major,
		       minor);
		advise("or this container was not given it (--device=%s)", path);
		return false;
	}
	if (!S_ISCHR(st.st_mode)) {
		report(what, FAIL, "%s is not a character device", path);
		advise("remove it, and have udev make it anew: udevadm trigger");
		return false;
	}
	if (sscanf(dev, "%u:%u", &major, &minor) == 2 &&
	    st.st_rdev != makedev(major, minor)) {
		report(what, FAIL, "%s is device %u:%u, the kernel's is %u:%u",
		       path, major(st.st_rdev), minor(st.st_rdev), major, minor);
		advise("it is stale: remove it, and have udev make it anew: udevadm trigger");
		return false;
	}

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		report(what, FAIL, "%s (mode %03o): %s", path,
		       st.st_mode & 0777, strerror(errno));
		if (errno == EACCES)
			advise("chmod 666 %s, for good by a udev rule", path);
		else if (errno == EPERM)
			advise("the container's device rules do not allow it: --device=%s",
			       path);
		else
			advise("see dmesg");
		return false;
	}
	close(fd);
	return true;
}

/* True if it can be talked to. */
static bool check_device(void)
{
	struct rdma_ep_reason why = {};
	struct rdma_ep_get_info info = {
		.hdr = {
			.size = sizeof(info),
			.reason_uptr = (uintptr_t)&why,
		},
	};
	char dev[32] = "";
	int fd, ret;

	read_line(dev, sizeof(dev), "/sys/class/misc/rdma_ep/dev");
	if (!check_node("device", RDMA_EP_DEVICE, dev))
		return false;
	report("device", OK, "%s can be read and written", RDMA_EP_DEVICE);

	fd = open(RDMA_EP_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	ret = ioctl(fd, RDMA_EP_GET_INFO, &info);
	if (ret) {
		report("interface", FAIL, "RDMA_EP_GET_INFO: %s%s%s",
		       strerror(errno), why.text[0] ? ": " : "", why.text);
		advise("module and tool do not fit: build both from one version");
	} else if (info.out_abi_version != RDMA_EP_ABI_VERSION) {
		report("interface", FAIL, "the module speaks ABI %u, this tool ABI %u",
		       info.out_abi_version, RDMA_EP_ABI_VERSION);
		advise("install module and library of one version");
	} else {
		report("interface", OK,
		       "ABI %u, %u commands, up to %u endpoints per process, backlog up to %u",
		       info.out_abi_version, info.out_commands,
		       info.out_max_endpoints, info.out_max_backlog);
	}
	close(fd);
	return !ret;
}

static void check_uverbs(void)
{
	if (exists("/sys/module/ib_uverbs") || exists("/sys/class/infiniband_verbs")) {
		report("verbs", OK, "ib_uverbs is loaded");
		return;
	}
	report("verbs", FAIL, "ib_uverbs is not loaded: no program can use queue pairs");
	advise("modprobe ib_uverbs");
}

static const char *port_state(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_DOWN: return "down";
	case IBV_PORT_INIT: return "initializing";
	case IBV_PORT_ARMED: return "armed";
	case IBV_PORT_ACTIVE: return "active";
	default: return "in an unknown state";
	}
}

/* The netdev of a port, from its GID table: the first entry that has one. */
static bool port_netdev(const char *dev, int port, char *netdev, size_t size)
{
	int i;

	for (i = 0; i < 256; i++)
		if (read_line(netdev, size,
			      "/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d",
			      dev, port, i) && netdev[0])
			return true;
	return false;
}

static bool netdev_has_addr(const char *netdev)
{
	struct ifaddrs *ifa, *it;
	bool found = false;

	if (getifaddrs(&ifa))
		return false;
	for (it = ifa; it; it = it->ifa_next)
		found |= it->ifa_addr && !strcmp(it->ifa_name, netdev) &&
			 (it->ifa_addr->sa_family == AF_INET ||
			  it->ifa_addr->sa_family == AF_INET6);
	freeifaddrs(ifa);
	return found;
}

/* True if connections can be made over this port. */
static bool check_port(struct ibv_context *verbs, const char *dev, int port)
{
	char netdev[64] = "";
	struct ibv_port_attr attr;
	const char *kind;
	int ret;

	ret = ibv_query_port(verbs, port, &attr);
	if (ret) {
		report(dev, WARN, "port %d: %s", port, strerror(ret));
		return false;
	}
	if (verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		kind = "iWARP";
	else if (attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		kind = "RoCE";
	else
		kind = "InfiniBand";

	if (!port_netdev(dev, port, netdev, sizeof(netdev)) &&
	    attr.link_layer == IBV_LINK_LAYER_ETHERNET) {
		report(dev, WARN, "port %d, %s, is %s and has no network interface here",
		       port, kind, port_state(attr.state));
		advise("its interface may be in another network namespace, or down");
		return false;
	}
	if (attr.state != IBV_PORT_ACTIVE) {
		report(dev, WARN, "port %d, %s%s%s, is %s", port, kind,
		       netdev[0] ? " on " : "", netdev, port_state(attr.state));
		if (netdev[0])
			advise("ip link set %s up, and see that it has a carrier: ip link show %s",
			       netdev, netdev);
		else
			advise("see that the cable is in, and that a subnet manager runs");
		return false;
	}
	/* The IPoIB interface of an InfiniBand port is not in the table. */
	if (!netdev[0]) {
		report(dev, OK, "port %d, %s, is active", port, kind);
		return true;
	}
	if (!if_nametoindex(netdev)) {
		report(dev, WARN, "port %d, %s on %s, is active, for another network namespace",
		       port, kind, netdev);
		advise("give this namespace an interface in that port's network (macvlan),");
		advise("or the device: rdma system set netns exclusive,");
		advise("rdma dev set %s netns NAME", dev);
		return false;
	}
	if (!netdev_has_addr(netdev)) {
		report(dev, WARN, "port %d, %s on %s, is active, but %s has no IP address",
		       port, kind, netdev, netdev);
		advise("ip addr add ADDRESS/LENGTH dev %s", netdev);
		return false;
	}
	report(dev, OK, "port %d, %s on %s, is active", port, kind, netdev);
	return true;
}

static bool check_rdma_device(struct ibv_device *dev)
{
	const char *name = ibv_get_device_name(dev);
	struct ibv_device_attr attr;
	char path[PATH_MAX], number[32] = "";
	struct ibv_context *verbs;
	bool usable = false;
	int port, ret;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", dev->dev_name);
	read_line(number, sizeof(number), "/sys/class/infiniband_verbs/%s/dev",
		  dev->dev_name);
	if (!check_node(name, path, number))
		return false;

	verbs = ibv_open_device(dev);
	if (!verbs) {
		report(name, FAIL, "cannot be opened: %s", strerror(errno));
		advise("see dmesg; the kernel and the provider library may not fit");
		return false;
	}
	ret = ibv_query_device(verbs, &attr);
	if (ret) {
		report(name, FAIL, "cannot be queried: %s", strerror(ret));
		advise("see dmesg");
	} else {
		for (port = 1; port <= attr.phys_port_cnt; port++)
			usable |= check_port(verbs, name, port);
	}
	ibv_close_device(verbs);
	return usable;
}

/* How many devices the kernel shows us, whatever libibverbs makes of them. */
static int kernel_devices(void)
{
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	dir = opendir("/sys/class/infiniband");
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void check_rdma_devices(void)
{
	struct ibv_device **list;
	bool usable = false;
	char mode[8] = "";
	int i, n = 0;

	list = ibv_get_device_list(&n);
	if (!list) {
		report("devices", FAIL, "the list of RDMA devices: %s",
		       strerror(errno));
		advise("modprobe ib_uverbs");
		return;
	}
	for (i = 0; i < n; i++)
		usable |= check_rdma_device(list[i]);
	ibv_free_device_list(list);

	read_line(mode, sizeof(mode), "/sys/module/ib_core/parameters/netns_mode");
	if (!n && kernel_devices()) {
		report("devices", FAIL,
		       "libibverbs has no provider for the RDMA devices here");
		advise("install the provider libraries (Debian: ibverbs-providers)");
	} else if (!n) {
		report("devices", FAIL, "there is no RDMA device");
		if (mode[0] == 'N')
			advise("if it is in another netns: rdma dev set NAME netns ...");
		advise("load the hardware's driver, or make a software device:");
		advise("rdma link add rxe0 type rxe netdev NETDEV");
	} else if (!usable) {
		report("devices", FAIL, "no port is ready for connections");
		advise("see the lines above");
	}
}

/* The name of the RDMA device that the kernel numbers @index. */
static void device_name(unsigned int index, char *name, size_t size)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	snprintf(name, size, "RDMA device %u", index);
	for (i = 0; list && list[i]; i++)
		if (ibv_get_device_index(list[i]) == (int)index)
			snprintf(name, size, "%s", ibv_get_device_name(list[i]));
	if (list)
		ibv_free_device_list(list);
}

/*
 * Bind an endpoint to @addr, with a free port. What @rec then says of it is
 * undone by closing @fd.
 */
static int try_bind(int fd, const struct sockaddr *addr, socklen_t len,
		    struct rdma_ep_record *rec, struct rdma_ep_reason *why)
{
	struct rdma_ep_create create = {
		.hdr = { .size = sizeof(create) },
		.port_space = 0x0106, /* RDMA_PS_TCP */
		.channel = -1,
	};
	struct rdma_ep_bind bind = {
		.hdr = {
			.size = sizeof(bind),
			.reason_uptr = (uintptr_t)why,
		},
		.record_len = sizeof(*rec),
		.record_uptr = (uintptr_t)rec,
		.addr.len = len,
	};

	memset(rec, 0, sizeof(*rec));
	why->text[0] = '\0';
	if (ioctl(fd, RDMA_EP_CREATE, &create))
		return -1;
	bind.ep = create.out_ep;
	memcpy(bind.addr.sa, addr, len);
	return ioctl(fd, RDMA_EP_BIND, &bind);
}

/* True if @ifa can be used. Says so, or why not if it looks as if it should. */
static bool check_address(int fd, const struct ifaddrs *ifa)
{
	const struct sockaddr *sa = ifa->ifa_addr;
	bool ip4 = sa->sa_family == AF_INET;
	char text[INET6_ADDRSTRLEN], dev[64];
	struct rdma_ep_reason why;
	struct rdma_ep_record rec;

	inet_ntop(sa->sa_family,
		  ip4 ? (void *)&((struct sockaddr_in *)sa)->sin_addr :
			(void *)&((struct sockaddr_in6 *)sa)->sin6_addr,
		  text, sizeof(text));
	if (try_bind(fd, sa, ip4 ? sizeof(struct sockaddr_in) :
				   sizeof(struct sockaddr_in6), &rec, &why)) {
		/* most netdevs have no RDMA device, and need none */
		if (errno != ENODEV)
			report("address", WARN, "%s on %s: %s%s%s", text,
			       ifa->ifa_name, strerror(errno),
			       why.text[0] ? ": " : "", why.text);
		return false;
	}
	if (rec.info.transport == RDMA_EP_TRANSPORT_NONE)
		return false;
	device_name(rec.info.device_index, dev, sizeof(dev));
	report("address", OK, "%s on %s is port %u of %s", text, ifa->ifa_name,
	       rec.info.port_num, dev);
	return true;
}

/* What connections are made from and to: the addresses of RDMA devices. */
static void check_addresses(void)
{
	struct ifaddrs *ifa, *it;
	bool usable = false;
	int fd;

	fd = open(RDMA_EP_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;

	if (!getifaddrs(&ifa)) {
		for (it = ifa; it; it = it->ifa_next)
			if (it->ifa_addr && !(it->ifa_flags & IFF_LOOPBACK) &&
			    (it->ifa_addr->sa_family == AF_INET ||
			     it->ifa_addr->sa_family == AF_INET6))
				usable |= check_address(fd, it);
		freeifaddrs(ifa);
	}
	close(fd);

	if (!usable) {
		report("addresses", FAIL,
		       "no IP address here belongs to an RDMA device");
		advise("see what the lines above say about ports");
	}
}

static void check_memlock(void)
{
	/* What rdmaep ping registers, and what programs do */
	const rlim_t least = 2 * PATH_MAX_SIZE, enough = 64 << 20;
	struct rlimit lim;
	unsigned long long caps = 0;
	char line[256];
	FILE *f;

	f = fopen("/proc/self/status", "re");
	if (f) {
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "CapEff: %llx", &caps) == 1)
				break;
		fclose(f);
	}

	if (getrlimit(RLIMIT_MEMLOCK, &lim))
		return;
	if (lim.rlim_cur == RLIM_INFINITY) {
		report("memory", OK, "any amount may be locked");
	} else if (caps & (1ULL << 14)) {	/* CAP_IPC_LOCK */
		report("memory", OK, "any amount may be locked, with CAP_IPC_LOCK");
	} else {
		report("memory", lim.rlim_cur < least ? FAIL : lim.rlim_cur < enough ? WARN : OK,
		       "%llu KiB may be locked for queues and buffers",
		       (unsigned long long)lim.rlim_cur / 1024);
		if (lim.rlim_cur >= enough)
			return;
		advise("ulimit -l unlimited; for good: memlock in /etc/security/limits.d,");
		advise("or LimitMEMLOCK=infinity in a unit");
	}
}

/* Which file the dynamic linker takes for @name, and whether it is ours. */
static bool find_loaded(const char *name, char *path, size_t size, bool *ours)
{
	struct link_map *map;
	void *lib;

	lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (!lib)
		return false;
	if (dlinfo(lib, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, path))
		snprintf(path, size, "%s", name);
	*ours = dlsym(lib, "rdmaep_strerror");
	dlclose(lib);
	return true;
}

static void check_library(void)
{
	char dir[PATH_MAX], file[PATH_MAX + 20], path[PATH_MAX];
	bool ours = false;

	if (tool_find_library(dir, sizeof(dir))) {
		report("library", FAIL, "librdmacm.so.1 is neither in %s nor beside this program",
		       RDMAEP_COMPAT_DIR);
		advise("meson install -C build");
		return;
	}
	snprintf(file, sizeof(file), "%s/librdmacm.so.1", dir);
	if (!find_loaded(file, path, sizeof(path), &ours)) {
		report("library", FAIL, "%s", dlerror());
		return;
	}
	report("library", ours ? OK : FAIL, "%s%s", path,
	       ours ? "" : " is not this library");

	if (!find_loaded("librdmacm.so.1", path, sizeof(path), &ours)) {
		report("programs", NOTE, "there is no other librdmacm.so.1");
		advise("rdmaep run PROGRAM, or LD_LIBRARY_PATH=%s PROGRAM", dir);
	} else if (ours) {
		report("programs", OK, "librdmacm.so.1 is %s: this library", path);
	} else {
		report("programs", NOTE, "librdmacm.so.1 is %s: not this library",
		       path);
		advise("rdmaep run PROGRAM, or LD_LIBRARY_PATH=%s PROGRAM", dir);
	}
}

/**
 * tool_doctor() - rdmaep doctor
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: exit code: 0 if there is no problem.
 */
int tool_doctor(const struct tool_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	bool talks;
	int c;

	while ((c = tool_getopt(cmd, argc, argv, "jh", options)) != -1) {
		if (c == 'h')
			return tool_help(cmd);
		if (c != 'j')
			return TOOL_USAGE;
		if (!findings)
			findings = json_object_new_array();
	}
	if (optind < argc)
		return tool_usage_error(cmd, "unknown argument %s", argv[optind]);

	check_module();
	talks = check_device();
	check_uverbs();
	check_rdma_devices();
	if (talks)
		check_addresses();
	check_memlock();
	check_library();

	if (findings)
		tool_print_json(findings);
	else if (problems)
		printf("\n%d problem%s\n", problems, problems > 1 ? "s" : "");
	else if (warnings)
		printf("\nNo problem, %d warning%s\n", warnings, warnings > 1 ? "s" : "");
	else
		printf("\nAll is well.\n");
	return problems ? TOOL_FAILED : TOOL_OK;
}
