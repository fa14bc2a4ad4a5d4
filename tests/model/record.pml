/* The life of one record, with owners that die at any step: a Promela model for Spin.
 *
 * Clients are processes of programs that make the same write, each by the table of verdicts: look,
 * reserve or take, gate, send, and write down how it ended. Any of them may be killed between two
 * steps, its lease may run out while it lives, its lock may be taken from it while it stands still.
 * Client 0 has a second thread: its program's deadline, which withdraws, or its exit, which
 * abandons. The sweep goes its way beside them, and time passes.
 *
 *   here             there
 *   look, holds      record.c record_view(), change_owner_holds(); verdict/decide.c is_driven()
 *   wait             runs.c ledger_wait(), owner_gone()
 *   begin            record.c change_begin(); shared.c lock_take(), lock_abandoned()
 *   fill, install    record.c change_publish(): the look, the spare bank | the compare-and-swap
 *   let_go           shared.c lock_drop()
 *   insert, reuse    reserve.c place_publish() | reuse(), reusable()
 *   take             transition.c take()
 *   gate, wire_send  transition.c ledger_gate() | ledger_wire_send()
 *   renew            transition.c ledger_renew()
 *   withdraw         transition.c ledger_withdraw()
 *   done             transition.c ledger_done(), begin_generation()
 *   unknown          transition.c ledger_unknown(), unknown_late()
 *   freed            transition.c ledger_freed(), may_free()
 *   Deadline         transition.c ledger_abandon(); intercept/send.c send_withdraw(), abandon()
 *   Sweep            sweep.c sweep_one(), sweep_what(), apply(), unlink_place()
 *
 * Who holds a record and finds its change refused although it still holds it (its lock was taken
 * away for a while) begins again; so do the functions of transition.c.
 *
 * Not here: the index and the table lock (two processes that insert the same content), the bytes of
 * a bank, the disk. A sequence wraps after 16 steps and a tenure after 8, which no client sleeps
 * through here.
 *
 * A step is what no other process can see half of: a compare-and-swap, a store, a copy that is
 * looked at again. The look before the bank and the store into it are one step: what a stop of a
 * lock's whole age between them leaves is the damage that docs/ledger-format.md names.
 *
 * Proven of every order of steps, by assertions and by Spin's search for states nobody leaves:
 *   - at most one attempt is under way, but for an owner whose lease ran out while it lived;
 *   - bytes that left and got no answer leave a record that says so, whoever dies;
 *   - nothing leaves after the program was told that it was withdrawn;
 *   - no generation passes the gate again after it was done, nor, by a sender who thinks nothing
 *     left, after bytes left; nor with a key the provider still remembers;
 *   - what is done stays done; the word always names a whole bank;
 *   - nobody waits for ever.
 *
 * The bounds below say how much happens at most; `run` says with which of them it was searched.
 * MUTANT puts a bug in, of which each must be found. */

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef KILLS
#define KILLS 1 /* processes that die */
#endif
#ifndef EXPIRES
#define EXPIRES 1 /* leases that run out while their owner lives */
#endif
#ifndef STALLS
#define STALLS 0 /* locks taken from somebody who merely stands still */
#endif
#ifndef SWEEPS
#define SWEEPS 0
#endif
#ifndef DEADLINES
#define DEADLINES 0 /* 1: client 0 has a second thread */
#endif
#ifndef NAMESPACES
#define NAMESPACES 0 /* 1: nobody sees who is dead, leases alone decide */
#endif
#ifndef GENERATIONS
#define GENERATIONS 2 /* at most */
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define LEASE_NOT_CHECKED     1
#define GATE_WITHOUT_COMPARE  2
#define MARKER_BEFORE_PAYLOAD 3
#define LOCKS_OF_THE_DEAD     4
#define WAIT_WITHOUT_END      5
#define TOMBSTONE_EARLY       6
#define FREED_BY_ANYBODY      7
#define NO_SECOND_TRY         8 /* was real */

#define ACTORS      (CLIENTS + 2)
#define SECOND      CLIENTS /* the second thread of client 0 */
#define SWEEPER     (CLIENTS + 1)
#define NOBODY      0

/* As in ledger.h. */
#define NONE     0
#define RESERVED 1
#define SENT     2
#define UNKNOWN  3
#define DONE     4
#define FREED    5
#define TOMB     6

/* --- in the file --- */
byte w_state, w_bank, w_owner, w_tenure, w_generation, w_sequence; /* the state word */
byte b_state[2], b_sequence[2];                                    /* its two banks */
bool b_spent[2]; /* freed by an answer the provider stores, or expired: the next key is another */
byte lock;       /* actor + 1 */
bool lease;      /* it is fresh */
byte life;

/* --- what a client holds --- */
byte h_tenure[CLIENTS], h_generation[CLIENTS], h_life[CLIENTS];
bool h_resend[CLIENTS]; /* it knows that bytes may have left before */

/* --- who lives, and what time it is --- */
bool alive[ACTORS] = true;
bool ttl_over, tomb_over;
byte kills = KILLS, expires = EXPIRES, stalls = STALLS;

/* --- what is true, and no process can ask --- */
bool told[CLIENTS];          /* its program was told that nothing was sent */
bool flying[CLIENTS];        /* between its gate and its answer, or that there is none */
bool late[CLIENTS];          /* its lease ran out while it lived */
byte out[3];   /* whose bytes left and got no answer, a bit a client */
bool over[3];  /* was done */
bool known[3]; /* the provider remembers the key */
bool torn;                   /* a lock was taken from the living: a bank may be another's */

#define sound     (b_state[w_bank] == w_state && b_sequence[w_bank] == w_sequence)
/* A bank that is not whole shows a doubt. */
#define at(state) (sound && w_state == state)
#define at_unknown (!sound || w_state == UNKNOWN)
#if NAMESPACES
#define lives(owner) (owner != NOBODY)
#else
#define lives(owner) (owner != NOBODY && alive[owner - 1])
#endif
#define holds(owner)  (lives(owner) && lease)
#define in_flight(me) (flying[me] && alive[me] && !late[me])
#if CLIENTS == 2
#define anybody_in_flight (in_flight(0) || in_flight(1))
#else
#define anybody_in_flight (in_flight(0) || in_flight(1) || in_flight(2))
#endif

#define is_hold(me)                                                                                \
	(w_owner == me + 1 && w_tenure == h_tenure[me] && w_generation == h_generation[me] &&      \
	 life == h_life[me])
#define same_generation(me)                                                                        \
	(life == h_life[me] && w_generation == h_generation[me] &&                                 \
	 (at(SENT) || at_unknown))
#if MUTANT == FREED_BY_ANYBODY
#define may_free(me) true
#else
#define may_free(me)                                                                               \
	(is_hold(me) ||                                                                            \
	 (at_unknown && w_owner == NOBODY && w_tenure == ((h_tenure[me] + 1) & 7)))
#endif
#if MUTANT == NO_SECOND_TRY
#define tried_enough true
#else
#define tried_enough ok
#endif
#if MUTANT == LEASE_NOT_CHECKED
#define takeable (w_sequence == v_sequence)
#else
#define takeable (w_sequence == v_sequence && !holds(w_owner))
#endif
#if MUTANT == LOCKS_OF_THE_DEAD
#define lock_free (lock == 0)
#else
#define lock_free (lock == 0 || !alive[lock - 1])
#endif
#if MUTANT == WAIT_WITHOUT_END
#define wait_ends (w_sequence != v_sequence)
#else
#define wait_ends (w_sequence != v_sequence || !holds(v_owner))
#endif
#if MUTANT == GATE_WITHOUT_COMPARE
#define unchanged true
#else
#define unchanged (w_sequence == seen)
#endif
#if MUTANT == TOMBSTONE_EARLY
#define tombstone_over true
#else
#define tombstone_over tomb_over
#endif

/* Locks, copies, and tests the copy: one step, for nothing is changed. `ok` false: cancelled. */
inline begin(actor, condition)
{
	atomic {
		if
		:: lock_free
		:: !lock_free && stalls > 0 -> stalls--; torn = true
		fi;
		if
		:: condition -> lock = actor + 1; seen = w_sequence; ok = true
		:: else -> lock = 0; ok = false
		fi
	}
}

/* The look, and the spare bank. */
inline fill(actor, new_state, spent)
{
	d_step {
		if
		:: lock == actor + 1 && w_sequence == seen ->
#if MUTANT != MARKER_BEFORE_PAYLOAD
			b_state[1 - w_bank] = new_state;
			b_sequence[1 - w_bank] = (w_sequence + 1) & 15;
#endif
			b_spent[1 - w_bank] = spent
		:: else -> ok = false
		fi
	}
}

/* The word; inside a step. Every record that is not in doubt, and was not just settled by who does
 * this, has no bytes out. */
inline install(new_state, new_owner, new_tenure, new_generation)
{
	if
	:: ok && unchanged ->
		w_state = new_state;
		w_owner = new_owner;
		w_tenure = (new_tenure) & 7;
		w_generation = new_generation;
		w_sequence = (w_sequence + 1) & 15;
		w_bank = 1 - w_bank;
		if
		:: new_state == RESERVED || new_state == DONE || new_state == FREED ->
			ttl_over = false;
			tomb_over = false
		:: else
		fi
	:: else -> ok = false
	fi;
	seen = 0
}

/* Never is `sent` forgotten, and done stays done. */
inline nothing_lost()
{
	assert(w_state == SENT || w_state == UNKNOWN || out[w_generation] == 0);
	assert(!over[w_generation] || w_state == DONE || w_state == TOMB || torn)
}

inline let_go(actor)
{
#if MUTANT == MARKER_BEFORE_PAYLOAD
	d_step {
		if
		:: ok -> b_state[w_bank] = w_state; b_sequence[w_bank] = w_sequence
		:: else
		fi
	};
#endif
	d_step {
		if
		:: lock == actor + 1 -> lock = 0
		:: else
		fi
	}
}

/* Inside a step. */
inline own(me, resend)
{
	h_tenure[me] = w_tenure;
	h_generation[me] = w_generation;
	h_life[me] = life;
	h_resend[me] = resend;
	late[me] = false
}

/* --- the transitions; each leaves `ok` --- */

inline insert(me)
{
	begin(me, at(NONE));
	if
	:: ok ->
		fill(me, RESERVED, false);
		d_step {
			install(RESERVED, me + 1, w_tenure + 1, 1);
			if
			:: ok -> life++; lease = true; own(me, false); nothing_lost()
			:: else
			fi
		};
		let_go(me)
	:: else
	fi
}

inline reuse(me, step)
{
	begin(me, w_sequence == v_sequence &&
	                  (at(FREED) || at(TOMB) || (step && at(DONE)) ||
	                   (step && (at(SENT) || at_unknown) && !holds(w_owner))));
	if
	:: ok ->
		fill(me, RESERVED, false);
		/* There before the word that needs it. */
		lease = true;
		d_step {
			install(RESERVED, me + 1, w_tenure + 1, w_generation + step);
			if
			:: ok -> own(me, false); nothing_lost()
			:: else
			fi
		};
		let_go(me)
	:: else
	fi
}

/* A `reserved` one stays what it is; bytes of any other may have left, so its taker resends. */
inline take(me)
{
	begin(me, takeable && (at(RESERVED) || at(SENT) || at_unknown));
	if
	:: ok ->
		next = RESERVED + (UNKNOWN - RESERVED) * (!at(RESERVED));
		fill(me, next, false);
		lease = true;
		d_step {
			install(next, me + 1, w_tenure + 1, w_generation);
			if
			:: ok -> own(me, (next == UNKNOWN)); nothing_lost()
			:: else
			fi;
			next = NONE
		};
		let_go(me)
	:: else
	fi
}

inline gate(me)
{
	do
	::	begin(me, is_hold(me) && (at(RESERVED) || at_unknown));
		if
		:: !ok -> break
		:: else
		fi;
		fill(me, SENT, false);
		d_step {
			install(SENT, w_owner, w_tenure, w_generation);
			if
			:: ok ->
				lease = true;
				/* At most one executes, but for an owner whose lease ran out. */
				assert(!anybody_in_flight);
				flying[me] = true;
				assert(!told[me]);
				/* Nothing is executed again that was done, nor unawares. */
				assert(!over[w_generation] || torn);
				assert(h_resend[me] || out[w_generation] == 0);
				assert(h_resend[me] || !known[w_generation])
			:: else
			fi
		};
		let_go(me);
		if
		:: tried_enough -> break
		:: else /* only the lock was lost: look again */
		fi
	od
}

/* Bytes. Those of an attempt that is over for everybody else count for nothing any more. */
inline leave(me)
{
	d_step {
		assert(!told[me]);
		if
		:: life == h_life[me] && w_generation == h_generation[me] && !over[w_generation] &&
		   w_state != TOMB ->
			out[h_generation[me]] = out[h_generation[me]] | (1 << me);
			known[h_generation[me]] = true
		:: else
		fi
	}
}

inline wire_send(me)
{
	do
	::	begin(me, is_hold(me) && at(SENT));
		if
		:: !ok -> break
		:: else
		fi;
		fill(me, SENT, false);
		d_step {
			install(SENT, w_owner, w_tenure, w_generation);
			if
			:: ok -> assert(!over[w_generation] || torn)
			:: else
			fi
		};
		let_go(me);
		if
		:: tried_enough -> break
		:: else /* only the lock was lost: look again */
		fi
	od
}

/* In time again, unless a taker has looked before. */
inline renew(me)
{
	d_step {
		if
		:: is_hold(me) -> lease = true; late[me] = late[me] && lock != 0
		:: else
		fi
	}
}

inline withdraw(actor, who)
{
	do
	::	begin(actor, is_hold(who) && (at(RESERVED) || at_unknown));
		if
		:: !ok -> break
		:: else
		fi;
		next = FREED - (FREED - UNKNOWN) * (!at(RESERVED));
		fill(actor, next, false);
		d_step {
			install(next, NOBODY, w_tenure + 1, w_generation);
			if
			:: ok -> told[who] = true; nothing_lost()
			:: else
			fi;
			next = NONE
		};
		let_go(actor);
		if
		:: tried_enough -> break
		:: else /* only the lock was lost: look again */
		fi
	od
}

/* Whoever brings it: the first final answer of the generation counts. All its attempts are over. */
inline done(me)
{
	do
	::	begin(me, same_generation(me));
		if
		:: !ok -> break
		:: else
		fi;
		fill(me, DONE, false);
		d_step {
			install(DONE, NOBODY, w_tenure + 1, w_generation);
			if
			:: ok ->
				over[w_generation] = true;
				out[w_generation] = 0;
				flying[0] = false;
				flying[1] = false;
#if CLIENTS > 2
				flying[2] = false;
#endif
				nothing_lost()
			:: else
			fi
		};
		let_go(me);
		if
		:: tried_enough -> break
		:: else /* only the lock was lost: look again */
		fi
	od
}

/* Of an attempt that is not the owner any more: a note, and nothing changes hands. */
inline unknown(actor, who)
{
	do
	::	begin(actor, same_generation(who));
		if
		:: !ok -> break
		:: else
		fi;
		if
		:: is_hold(who) ->
			fill(actor, UNKNOWN, false);
			d_step {
				install(UNKNOWN, NOBODY, w_tenure + 1, w_generation);
				if
				:: ok -> flying[who] = false; nothing_lost()
				:: else
				fi
			}
		:: else ->
			next = UNKNOWN - (UNKNOWN - SENT) * at(SENT);
			fill(actor, next, false);
			d_step { install(next, w_owner, w_tenure, w_generation); next = NONE }
		fi;
		let_go(actor);
		if
		:: tried_enough -> break
		:: else /* only the lock was lost: look again */
		fi
	od
}

/* "Not executed" is about its own bytes: there must be no other's. */
inline freed(me, stored)
{
	do
	::	begin(me, same_generation(me) && may_free(me));
		if
		:: !ok -> break
		:: else
		fi;
		fill(me, FREED, stored);
		d_step {
			install(FREED, NOBODY, w_tenure + 1, w_generation);
			if
			:: ok ->
				out[w_generation] = out[w_generation] & (255 - (1 << me));
				known[w_generation] = stored;
				nothing_lost()
			:: else
			fi
		};
		let_go(me);
		if
		:: tried_enough -> break
		:: else /* only the lock was lost: look again */
		fi
	od
}

/* --- who acts --- */

proctype Client(byte me)
{
	byte v_state, v_owner, v_sequence, v_generation, seen, next;
	bool v_spent, ok;

	{
		skip;
	again:
		atomic {
			/* The word names a whole bank at every moment. */
			assert(sound || torn);
			if
			:: sound -> v_state = w_state
			:: else -> v_state = UNKNOWN
			fi;
			v_owner = w_owner;
			v_sequence = w_sequence;
			v_generation = w_generation;
			v_spent = b_spent[w_bank];
			ok = false
		};
		if
		:: v_state == NONE -> insert(me)
		:: v_state == FREED || v_state == TOMB ->
			if
			:: v_generation + v_spent > GENERATIONS -> goto ended
			:: else -> reuse(me, v_spent)
			fi
		:: v_state == DONE -> goto ended /* replay */
		:: v_state == DONE && v_generation < GENERATIONS -> reuse(me, 1)
		:: v_state >= RESERVED && v_state <= UNKNOWN && holds(v_owner) -> /* join */
			wait_ends;
			goto again
		:: v_state >= RESERVED && v_state <= UNKNOWN && !holds(v_owner) -> take(me)
		:: (v_state == SENT || v_state == UNKNOWN) && !holds(v_owner) -> goto ended /* refuse */
		:: (v_state == SENT || v_state == UNKNOWN) && !holds(v_owner) &&
		   v_generation < GENERATIONS ->
			reuse(me, 1) /* the doubt is dropped */
		fi;
		if
		:: !ok -> goto again
		:: else
		fi;
		gate(me);
		if
		:: told[me] -> goto ended
		:: !ok && !told[me] -> goto again
		:: else
		fi;
		leave(me);
		if
		:: true
		:: is_hold(me) -> renew(me)
		:: wire_send(me);
			if
			:: ok -> leave(me)
			:: else /* stopped */
			fi
		fi;
		flying[me] = false;
		if
		:: done(me);
			if
			:: ok -> goto ended
			:: else -> goto again /* plays the stored one */
			fi
		:: unknown(me, me)
		:: !h_resend[me] -> freed(me, false)
		:: !h_resend[me] -> freed(me, true)
		fi;
	ended:
		/* Nothing of it matters any more; it lives on. */
		atomic {
			late[me] = false;
			h_resend[me] = false;
#if DEADLINES == 0
			h_tenure[me] = 0;
			h_generation[me] = 0;
			h_life[me] = 0
#endif
		}
	}
	unless { !alive[me] }
}

proctype Deadline()
{
	byte seen, next;
	bool ok;

	{
		skip;
	end:
		h_life[0] > 0;
		withdraw(SECOND, 0);
		if
		:: ok
		:: !ok /* too late: the sending goes on by itself */
		:: !ok -> unknown(SECOND, 0) /* ... or not: the process ends */
		fi
	}
	unless { !alive[SECOND] }
}

#define may_tomb (sound && ttl_over && (w_state == DONE || w_state == FREED))
#define may_drop (sound && tombstone_over && w_state == TOMB)
#define may_give (sound && w_state == RESERVED && (!lives(w_owner) || (ttl_over && !lease)))

proctype Sweep()
{
	byte seen, n = SWEEPS;
	bool ok;

	{
		skip;
	end:
		do
		:: n > 0 && may_tomb ->
			n--;
			begin(SWEEPER, may_tomb);
			if
			:: ok ->
				fill(SWEEPER, TOMB, (w_state == DONE || b_spent[w_bank]));
				d_step {
					install(TOMB, w_owner, w_tenure, w_generation);
					nothing_lost()
				};
				let_go(SWEEPER)
			:: else
			fi
		:: n > 0 && may_drop ->
			n--;
			begin(SWEEPER, may_drop);
			if
			:: ok ->
				fill(SWEEPER, NONE, false);
				d_step {
					install(NONE, NOBODY, w_tenure + 1, w_generation);
					if
					:: ok ->
						life++;
						over[1] = false;
						over[2] = false;
						nothing_lost();
						out[1] = 0;
						out[2] = 0
					:: else
					fi
				};
				let_go(SWEEPER)
			:: else
			fi
		:: n > 0 && may_give ->
			n--;
			begin(SWEEPER, may_give);
			if
			:: ok ->
				fill(SWEEPER, FREED, false);
				d_step {
					install(FREED, NOBODY, w_tenure + 1, w_generation);
					nothing_lost()
				};
				let_go(SWEEPER)
			:: else
			fi
		od
	}
	unless { !alive[SWEEPER] }
}

/* Leases run out: those of the dead in the end always, those of the living a few times. */
proctype Time()
{
end:
	do
	:: atomic {
		lease && w_owner != NOBODY && alive[w_owner - 1] && expires > 0 ->
		lease = false;
		late[w_owner - 1] = true;
		expires--
	}
#if NAMESPACES
	:: atomic { lease && w_owner != NOBODY && !alive[w_owner - 1] -> lease = false }
#endif
#if SWEEPS > 0
	:: atomic {
		!ttl_over && (w_state == RESERVED || w_state == DONE || w_state == FREED) ->
		ttl_over = true
	}
	/* A provider remembers as long as the tombstone is there. */
	:: atomic {
		!tomb_over && w_state == TOMB ->
		tomb_over = true;
		known[1] = false;
		known[2] = false
	}
#endif
	od
}

proctype Reaper()
{
end:
	do
	:: atomic { kills > 0 && alive[0] -> kills--; alive[0] = false; alive[SECOND] = false }
	:: atomic { kills > 0 && alive[1] -> kills--; alive[1] = false }
#if CLIENTS > 2
	:: atomic { kills > 0 && alive[2] -> kills--; alive[2] = false }
#endif
#if SWEEPS > 0
	:: atomic { kills > 0 && alive[SWEEPER] -> kills--; alive[SWEEPER] = false }
#endif
	od
}

init {
	atomic {
		run Client(0);
		run Client(1);
#if CLIENTS > 2
		run Client(2);
#endif
#if DEADLINES > 0
		run Deadline();
#endif
#if SWEEPS > 0
		run Sweep();
#endif
		run Time();
#if KILLS > 0
		run Reaper();
#endif
	}
}
