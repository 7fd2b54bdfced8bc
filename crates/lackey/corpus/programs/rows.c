/* Adds up a matrix by rows and by columns and exits: no library, so that its trace is small. Linux on x86.
 *   gcc -O1 -nostdlib -static -fno-stack-protector -fcf-protection=none [-m32] rows.c -o rows
 * -DSAY writes text to standard error in between, -DFAULT ends by a fault. */
#define SIZE 4

static volatile int matrix[SIZE][SIZE];
static volatile long total;

static long call(long number, long a, long b, long c)
{
#ifdef __x86_64__
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#else
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
#endif
    return result;
}

static void say(const char *text, int bytes)
{
#ifdef SAY
#ifdef __x86_64__
    call(1, 2, (long)text, bytes);
#else
    call(4, 2, (long)text, bytes);
#endif
#endif
    (void)text, (void)bytes;
}

void _start(void)
{
    for (int row = 0; row < SIZE; row++) {
        for (int column = 0; column < SIZE; column++)
            matrix[row][column] = row * column;
        say(".", 1);
    }
    say("\nfilled\n", 8);
    for (int column = 0; column < SIZE; column++)
        for (int row = 0; row < SIZE; row++)
            total += matrix[row][column];
    say("added\n", 6);
#ifdef FAULT
    *(volatile int *)0 = 1;
#endif
#ifdef __x86_64__
    call(60, total & 1, 0, 0);
#else
    call(1, total & 1, 0, 0);
#endif
    for (;;) {
    }
}
