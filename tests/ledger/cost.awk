# Reads the callgrind files given as arguments (names not compressed) and prints a line of JSON for each: its name, the
# instructions of the program itself and of libraries, the calls whose cost arises elsewhere, the bytes that the program
# copied, and the program's instructions by function.
#
# The fake devices and log output are not counted. Neither is the C library's work for them: the inclusive cost of their
# calls into it is subtracted.
BEGIN {
	split("malloc calloc realloc memalign posix_memalign aligned_alloc reallocarray", names, " ")
	for (i in names) allocates[names[i]] = 1
	# ibv_get_cq_event and rdma_get_cm_event are in the list because each reads a file descriptor.
	split("epoll_wait epoll_pwait epoll_ctl poll ppoll read pread write pwrite readv writev timerfd_settime recv recvfrom recvmsg recvmmsg send sendto " \
	      "sendmsg sendmmsg accept accept4 socket connect bind listen shutdown close setsockopt getsockopt getsockname " \
	      "getpeername fcntl ioctl eventfd_read eventfd_write getrandom mmap munmap madvise ibv_get_cq_event " \
	      "rdma_get_cm_event", names, " ")
	for (i in names) enters_kernel[names[i]] = 1
}

function kind_of(object) {
	if (object ~ /\/libfakes\.so/) return "fakes"
	if (object ~ /\/libsteady\.so/) return "steady"
	if (object ~ /\/lib(ssl|crypto)\.so/) return "openssl"
	if (object ~ /\/libev\.so/) return "libev"
	if (object ~ /\/(rdma_server|performance_test)$/) return "own"
	if (object ~ /\/(libc|libm|ld-linux-x86-64|ld-linux-aarch64)\.so/) return "libc"
	return "other"
}

# The name in the source, without the suffixes that the compiler adds to copies of a function and callgrind to recursive
# ones, and without what _FORTIFY_SOURCE adds to checked ones.
function plain(name) {
	sub(/'[0-9]+$/, "", name)
	if (name ~ /^__.*_chk$/) name = substr(name, 3, length(name) - 6)
	sub(/\.(lto_priv|constprop|isra|part|cold).*/, "", name)
	return name
}

function base_of(path) {
	sub(/.*\//, "", path)
	return path
}

function print_part(    k, sep) {
	printf "{\"part\":\"%s\"", part
	for (k in shown) printf ",\"%s\":%d", k, total[k]
	printf ",\"functions\":{"
	for (k in functions) {
		printf "%s\"%s\":%d", sep, k, functions[k]
		sep = ","
	}
	print "}}"
}

function begin_part(    k) {
	split("own libev openssl libc allocations openssl_allocations system_calls device_calls copied_bytes", names, " ")
	delete shown
	for (k in names) shown[names[k]] = 1
	delete total
	delete functions
	part = base_of(FILENAME)
}

FNR == 1 {
	if (NR > 1) print_part()
	begin_part()
}

/^ob=/ { object_kind = kind_of(substr($0, 4)); next }
/^fl=/ { file = base_of(substr($0, 4)); next }
/^fn=/ {
	name = plain(substr($0, 4))
	kind = object_kind
	if (kind == "own" && file ~ /^(log|utf8)\.c$/) kind = "log"
	callee_kind = kind
	next
}
/^cob=/ { callee_kind = kind_of(substr($0, 5)); next }
/^cfn=/ { callee = plain(substr($0, 5)); next }

# The next line has the inclusive cost of the call.
/^calls=/ {
	split(substr($0, 7), count, " ")
	n = count[1]
	# Functions of the C library may allocate for their callers; count such an allocation once.
	if (callee in allocates && kind !~ /^(fakes|steady|log)$/ && !(kind == "libc" && name in allocates))
		total[kind == "openssl" ? "openssl_allocations" : "allocations"] += n
	if (kind == "own" || kind == "libev" || kind == "openssl") {
		if (callee in enters_kernel) total["system_calls"] += n
		if (callee_kind == "fakes") total["device_calls"] += n
	}
	if (callee ~ /^copied_[0-9]+$/) total["copied_bytes"] += n * 2 ^ substr(callee, 8)
	is_call = 1
	next
}

/^[0-9+*-]/ {
	if (!is_call) {
		total[kind] += $2
		if (kind == "own") functions[file ":" name] += $2
	} else if ((kind == "fakes" || kind == "steady" || kind == "log") && callee_kind == "libc") {
		total["libc"] -= $2
	}
	is_call = 0
	callee_kind = kind
}

END { print_part() }
