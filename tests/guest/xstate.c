/* Lets User Mode Linux 6.1 run on processors with more registers than it knows, as those with AMX (tiles of 8 KiB).
 *
 * It keeps the floating-point registers of each of its processes in 2,696 bytes, which end before the tiles, and sets
 * them by ptrace(2). The host's kernel refuses to set less than all of its registers with EFAULT (Linux,
 * arch/x86/kernel/fpu/regset.c, xstateregs_set), and the guest ends with "ptrace set fp regs failed". This library,
 * preloaded, sets what is given and leaves the rest as it is: the guest's processes do not use the tiles.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* XSAVE areas of present processors have 11,008 bytes at most. */
static char all[1 << 16];

static long call(long request, pid_t pid, void *address, void *data)
{
	return syscall(SYS_ptrace, request, pid, address, data);
}

static long set_registers(pid_t pid, const struct iovec *given)
{
	struct iovec whole = { all, sizeof all };
	if (call(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &whole) < 0)
		return -1;
	if (given->iov_len < whole.iov_len)
		memcpy(all, given->iov_base, given->iov_len);
	else
		whole = *given;
	return call(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &whole);
}

/* As the C library's. */
long ptrace(enum __ptrace_request request, ...)
{
	va_list more;
	va_start(more, request);
	pid_t pid = va_arg(more, pid_t);
	void *address = va_arg(more, void *);
	void *data = va_arg(more, void *);
	va_end(more);

	if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE)
		return set_registers(pid, data);
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
		long word;
		long failed = call(request, pid, address, &word);
		if (failed < 0)
			return failed;
		errno = 0;
		return word;
	}
	return call(request, pid, address, data);
}
