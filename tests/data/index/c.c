#include <stdio.h>
#include "shop/größe.h"
#ifndef X_H
#define X_H 1
#define MAX(a, b) ((a) > (b))
/* A point. */
typedef struct { int x, *y; char name[3]; int (*cb)(int a); } Point;
typedef struct node { struct node *next; } node_t, *node_p;
typedef int (*handler)(int);
typedef unsigned long größe_t;
enum color { RED, GREEN = 2 };
struct out { struct { int in; } anon; union { int u; }; } the_out = { 1 };
extern int global;
static int local = 3, *other;
const char *names[] = { "a", "b" };
int proto(int a, char *b);
/* Adds. Twice. */
static inline struct node *add(struct node *n, int k)
{
    int x = MAX(k, 1); Point p; int q(int);
    n->cb(x); (*n->cb)(3);
    return malloc(sizeof(Point));
}
#endif
