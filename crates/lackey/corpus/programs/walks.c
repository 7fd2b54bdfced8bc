/* Walks over a matrix by rows and by columns, and touches elements of it at random: enough data accesses for cache
 * simulators to agree or differ on. No library, so that its trace is its own accesses alone. Linux on x86-64.
 *   gcc -O1 -nostdlib -static -fno-stack-protector -fcf-protection=none walks.c -o walks */
#define SIZE 96

/* One byte in front, so that some elements lie across two lines. */
static volatile struct __attribute__((packed)) {
    char front;
    double element[SIZE][SIZE];
} matrix;
static volatile double total;

void _start(void)
{
    unsigned state = 1;
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column++)
            matrix.element[row][column] = row ^ column;
    for (int column = 0; column < SIZE; column++)
        for (int row = 0; row < SIZE; row++)
            total += matrix.element[row][column];
    for (int step = 0; step < 5000; step++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        matrix.element[state % SIZE][state / SIZE % SIZE] += step;
    }
    __asm__ volatile("syscall" : : "a"(60L), "D"(0L) : "rcx", "r11", "memory");
    for (;;) {
    }
}
