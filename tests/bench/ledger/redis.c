/* Redis over a unix socket: SET NX, then SET. How durable is the server's business, which the
 * driver starts. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "store.h"

static void *redis_open(const char *folder, const char *mode)
{
	char path[512];
	redisContext *c;

	(void)mode;
	snprintf(path, sizeof(path), "%s/redis.sock", folder);
	c = redisConnectUnix(path);
	return c && !c->err ? c : NULL;
}

static bool is_ok(redisReply *reply)
{
	bool fine = reply && reply->type == REDIS_REPLY_STATUS;

	freeReplyObject(reply);
	return fine;
}

static bool redis_pair(void *at, const struct item *item)
{
	return is_ok(redisCommand(at, "SET %b R NX", item->key, (size_t)KEY_BYTES)) &&
	       is_ok(redisCommand(at, "SET %b %b", item->key, (size_t)KEY_BYTES, item->answer,
	                          (size_t)ANSWER_BYTES));
}

static bool redis_load(void *at, uint64_t from, uint64_t count)
{
	enum { PIPE = 500 };
	struct item item;
	void *reply;

	for (uint64_t i = 0; i < count; i += PIPE) {
		uint64_t n = count - i < PIPE ? count - i : PIPE;
		for (uint64_t j = 0; j < n; j++) {
			item_make(from + i + j, &item);
			redisAppendCommand(at, "SET %b %b", item.key, (size_t)KEY_BYTES,
			                   item.answer, (size_t)ANSWER_BYTES);
		}
		for (uint64_t j = 0; j < n; j++)
			if (redisGetReply(at, &reply) != REDIS_OK || !is_ok(reply))
				return false;
	}
	return true;
}

static bool redis_find(void *at, const uint8_t *key, char *answer)
{
	redisReply *reply = redisCommand(at, "GET %b", key, (size_t)KEY_BYTES);
	bool fine = reply && reply->type == REDIS_REPLY_STRING && reply->len == ANSWER_BYTES;

	if (fine)
		memcpy(answer, reply->str, ANSWER_BYTES);
	freeReplyObject(reply);
	return fine;
}

const struct store store_redis = {"redis", redis_open, redis_load, redis_pair, redis_find};
