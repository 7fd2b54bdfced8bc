/* Many small calls of OpenGL, nearly nothing drawn: what recording costs a call. Prints CPU seconds. */
#include "gl.h"
#include <time.h>

int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 500;
    open_display(8);
    begin(context_of(0x30a2, 2, 1, 0, NULL));
    void (*vertex)(float, float, float) = GL(void, glVertex3f, float, float, float);
    void (*normal)(float, float, float) = GL(void, glNormal3f, float, float, float);
    void (*start)(unsigned) = GL(void, glBegin, unsigned);
    void (*end)(void) = GL(void, glEnd, void);
    void (*translate)(float, float, float) = GL(void, glTranslatef, float, float, float);
    void (*load)(const float *) = GL(void, glLoadMatrixf, const float *);
    void (*parameter)(unsigned, unsigned, int) = GL(void, glTexParameteri, unsigned, unsigned, int);
    float matrix[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    for (int round = 0; round < rounds; round++) {
        for (int object = 0; object < 200; object++) {
            load(matrix);
            translate(0, 0, object);
            parameter(0xde1, 0x2801, 0x2600);
            start(4);
            for (int corner = 0; corner < 9; corner++) {
                normal(0, 0, 1);
                /* Outside of what is seen. */
                vertex(5 + corner * 0.1f, 5, 0);
            }
            end();
        }
        eglSwapBuffers(display, surface);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    printf("%.6f\n", (after.tv_sec - before.tv_sec) + (after.tv_nsec - before.tv_nsec) * 1e-9);
    return 0;
}
