/* The end of a file that is still mapped: how its users learn that it is no longer the ledger.
 *
 * One word of the header, looked at by every change under the lock the change is made with. NEW: no
 * record gets an owner any more, but what is under way ends in the usual way. ALL: nothing changes
 * any more. Whoever replaces a ledger sets the word first and takes each record's lock afterwards:
 * a change that was made under the lock before is seen, a later one sees the word. So nobody goes
 * on writing into a file that others no longer look into.
 *
 * A header whose first bytes are not a ledger's any more counts as NEW: it was overwritten under
 * us. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ledger/internal.h"

static uint64_t retired_word(const struct ledger *l)
{
	/* Sequentially consistent, with retire_set: see above. */
	return atomic_load(&l->header->retired);
}

static bool magic_stands(const struct ledger *l)
{
	uint64_t here, good;

	shared_out(&here, &l->header->fixed, sizeof(here));
	memcpy(&good, LAYOUT_MAGIC, sizeof(good));
	return here == good;
}

bool retire_no_new(const struct ledger *l)
{
	return (retired_word(l) & 3) >= RETIRE_NEW || !magic_stands(l);
}

bool retire_no_change(const struct ledger *l)
{
	return (retired_word(l) & 3) >= RETIRE_ALL;
}

uint64_t retire_word(enum retire_level level, enum retire_why why)
{
	return (uint64_t)why << 2 | (uint64_t)level;
}

void retire_set(struct ledger *l, enum retire_level level, enum retire_why why)
{
	atomic_store(&l->header->retired, level == RETIRE_NOT ? 0 : retire_word(level, why));
}

void retire_file(int fd, uint64_t word)
{
	ssize_t n;

	do
		n = pwrite(fd, &word, sizeof(word), offsetof(struct layout_header, retired));
	while (n < 0 && errno == EINTR);
}

const char *retire_text(uint64_t word)
{
	switch ((enum retire_why)(word >> 2 & 7)) {
	case RETIRE_RESIZED:
		return "was replaced by one of another size";
	case RETIRE_RECOVERED:
		return "was replaced by one that `sendonce ledger recover` made";
	case RETIRE_DAMAGED:
		break;
	}
	return "was found damaged, and writes are refused until a person runs `sendonce ledger "
	       "recover`";
}

const char *ledger_retired(const struct ledger *l)
{
	uint64_t word = retired_word(l);

	if ((word & 3) == RETIRE_NOT)
		return magic_stands(l) ? NULL : retire_text(0);
	return retire_text(word);
}
