/* Types, a static function that is inlined, and calls: what debug data of C has. */
struct node {
    struct node *next;
    unsigned flags : 3, kind : 5;
    union { long number; double real; char text[8]; } value;
};
typedef int (*visit)(struct node *, void *);
static inline int is_set(const struct node *node) { return node->flags != 0; }
int walk(struct node *first, visit each, void *with) {
    int found = 0;
    for (struct node *one = first; one; one = one->next)
        if (is_set(one)) found += each(one, with);
    return found;
}
