/* `ledger.path: memory`: a ledger without a file.
 *
 * The same bytes in an anonymous mapping, shared with the children that are forked after it was
 * made, gone with the last of them. For tests: nothing on disk, nothing left over, nothing that
 * another program sees. Two programs, or one before and after exec, do not share it. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "ledger/internal.h"

bool memory_path(const char *path)
{
	return path && strcmp(path, LEDGER_MEMORY) == 0;
}

int memory_map(struct ledger *l, const struct ledger_options *o, struct ledger_error *error)
{
	uint64_t whole = (uint64_t)o->size / LAYOUT_PAGE * LAYOUT_PAGE;
	void *base;

	if (o->size < LAYOUT_MIN_SIZE || o->size > LAYOUT_MAX_SIZE)
		return file_fail(error, LEDGER_CANNOT,
		                 "memory: cannot be made: ledger.size is %lld bytes, it must be "
		                 "between 256KiB and 64GiB",
		                 (long long)o->size);
	if (create_header(&l->fixed, o) != 0)
		return file_fail(error, LEDGER_CANNOT, "memory: no random bytes for a ledger");
	base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return file_fail(error, LEDGER_CANNOT,
		                 "memory: %llu bytes cannot be mapped: %s; make ledger.size "
		                 "smaller or raise the limit (ulimit -v)",
		                 (unsigned long long)whole, strerror(errno));
	l->base = base;
	l->size = whole;
	l->header = base;
	memcpy(&l->header->fixed, &l->fixed, sizeof(l->fixed));
	memcpy(&l->header->again, &l->fixed, sizeof(l->fixed));
	l->durable = false;
	return LEDGER_OK;
}
