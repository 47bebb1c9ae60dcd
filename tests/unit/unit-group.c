/* What ranks do together, with threads in the place of processes: sums come to who owns them, weights to all,
 * in any number of ranks, also where some own nothing; one failure is everybody's. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "thread-group.h"

struct member {
  struct ms_group *group;
  int64_t all;
  float *gradient, *own;
  uint16_t *weights;
  int code;
  struct ms_error error;
  double most;
};

static float gradient_at(int rank, int64_t i) {
  return (float)((i * 7 + rank * 13) % 251) - 100; /* whole, so that sums are exact */
}

static void *work(void *data) {
  struct member *m = data;
  int64_t first, owned;
  ms_group_share(m->group, m->all, &first, &owned);
  ms_group_reduce(m->group, m->gradient, m->all, m->own + first);
  for (int64_t i = first; i < first + owned; i++)
    m->weights[i] = (uint16_t)(i * 31);
  ms_group_gather(m->group, m->weights, m->all);
  m->most = ms_group_most(m->group, m->group->rank == 1 ? 5 : 2);
  if (m->group->rank == 1)
    m->code = ms_error_set(&m->error, MS_EINPUT, "this rank failed");
  m->code = ms_group_agree(m->group, m->code, &m->error);
  return NULL;
}

static void check_sums(const struct member *members, int size) {
  int64_t wrong = 0, owned_by_all = 0, all = members[0].all;
  int weights = 0;
  for (int r = 0; r < size; r++) {
    int64_t first, owned, share = ms_group_share(members[r].group, all, &first, &owned);
    owned_by_all += owned;
    wrong += share % MS_GROUP_ALIGN != 0;
    for (int64_t i = first; i < first + owned; i++) {
      float sum = 0;
      for (int other = 0; other < size; other++)
        sum += gradient_at(other, i);
      wrong += members[r].own[i] != sum;
    }
    for (int64_t i = 0; i < all; i++)
      weights += members[r].weights[i] != (uint16_t)(i * 31);
  }
  check_ok(wrong == 0 && owned_by_all == all, "%d ranks, %lld parameters: each sum comes to one rank", size,
           (long long)all);
  check_ok(weights == 0, "%d ranks, %lld parameters: weights come to all", size, (long long)all);
}

static void check_group(int size, int64_t all, int in_place) {
  struct member *members = calloc((size_t)size, sizeof *members);
  struct thread_group group;
  int same = 1;
  thread_group_open(&group, size);
  for (int r = 0; r < size; r++) {
    struct member *m = &members[r];
    m->group = &group.ranks[r];
    m->all = all;
    m->gradient = malloc((size_t)(all + MS_GROUP_ALIGN) * sizeof *m->gradient);
    m->own = in_place ? m->gradient : calloc((size_t)(all + MS_GROUP_ALIGN), sizeof *m->own);
    m->weights = calloc((size_t)all + 1, sizeof *m->weights);
    for (int64_t i = 0; i < all; i++)
      m->gradient[i] = gradient_at(r, i);
  }
  thread_group_run(&group, work, members, sizeof *members);
  check_sums(members, size);
  for (int r = 0; r < size; r++)
    same &= members[r].most == 5 && members[r].code == MS_EINPUT && members[r].error.code == MS_EINPUT &&
            !strcmp(members[r].error.message, r == 1 ? "this rank failed" : "rank 1: this rank failed");
  check_ok(same, "%d ranks know of the greatest number, and what failed on one", size);
  for (int r = 0; r < size; r++) {
    if (!in_place)
      free(members[r].own);
    free(members[r].gradient);
    free(members[r].weights);
  }
  thread_group_close(&group);
  free(members);
}

int main(int argc, char **argv) {
  int64_t first, owned;
  check_begin(argc, argv);
  check_group(2, 8192, 1);
  check_group(2, 1300001, 1);
  check_group(3, 5000, 0); /* the last rank has nothing */
  check_group(4, 17, 1);
  check_group(5, 2200007, 0);
  ms_group_share(NULL, 12345, &first, &owned);
  check_ok(first == 0 && owned == 12345 && ms_group_most(NULL, 3) == 3 &&
               ms_group_agree(NULL, -4, NULL) == -4,
           "alone all is one's own");
  return check_end();
}
