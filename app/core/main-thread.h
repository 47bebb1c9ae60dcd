/* Which thread may do what; inside the app only.
 *
 * The main thread is the process's first one: it draws, and so it never calls the engine, SQLite or the file
 * system. Functions that do say so with MSA_ASSERT_OFF_MAIN, functions of objects that the window holds with
 * MSA_ASSERT_MAIN. Both stay in every build: a slip is a hang for somebody with a slow disk. */
#pragma once
#include <glib.h>
#include <unistd.h>

#define MSA_ON_MAIN() (gettid() == getpid())
#define MSA_ASSERT_MAIN() g_assert(MSA_ON_MAIN())
#define MSA_ASSERT_OFF_MAIN() g_assert(!MSA_ON_MAIN())
