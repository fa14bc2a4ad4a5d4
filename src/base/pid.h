/* The number of this process. */
#ifndef SENDONCE_BASE_PID_H
#define SENDONCE_BASE_PID_H

/* getpid(), asked of the kernel once a process: every lock names its holder, every event its
 * process, and a system call costs more than the rest of taking a lock. Keeps errno. A child that
 * shares our memory (vfork) passes for us. */
unsigned pid_own(void);

#endif
