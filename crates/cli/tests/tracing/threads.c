/* Threads with contexts that share objects, taking turns; a child that draws too; and endings of all kinds. */
#include "gl.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 5, ROUNDS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next = PTHREAD_COND_INITIALIZER;
static int turn;
static EGLContext first;
static unsigned texture;

static void *drawing(void *argument) {
    int mine = (int)(intptr_t)argument;
    EGLSurface own = surface_of(WIDTH, HEIGHT);
    pthread_mutex_lock(&lock);
    EGLContext context = context_of(0x30a2, 2, 1, 0, first);
    pthread_mutex_unlock(&lock);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&lock);
        while (turn % THREADS != mine)
            pthread_cond_wait(&next, &lock);
        surface = own;
        begin(context);
        GL(void, glEnable, unsigned)(0xde1);
        GL(void, glBindTexture, unsigned, unsigned)(0xde1, texture);
        unsigned char pixel[] = {60 * mine, 255 - 60 * round, 200, 255};
        GL(void, glTexSubImage2D, unsigned, int, int, int, int, int, unsigned, unsigned, const void *)
        (0xde1, 0, round % 2, mine % 2, 1, 1, 0x1908, 0x1401, pixel);
        GL(void, glBegin, unsigned)(5);
        for (int corner = 0; corner < 4; corner++) {
            GL(void, glTexCoord2f, float, float)(corner % 2, corner / 2);
            GL(void, glVertex2f, float, float)(corner % 2 * 1.5f - 0.9f, corner / 2 * 1.2f - 0.1f * mine);
        }
        GL(void, glEnd, void)();
        GL(void, glFinish, void)();
        end_frame();
        eglMakeCurrent(display, NULL, NULL, NULL);
        turn++;
        pthread_cond_broadcast(&next);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Draws as fast as it can, from its own memory, until the process ends. */
static void *racing(void *argument) {
    (void)argument;
    pthread_mutex_lock(&lock);
    EGLSurface own = surface_of(16, 16);
    EGLContext context = context_of(0x30a2, 2, 1, 0, first);
    pthread_mutex_unlock(&lock);
    eglMakeCurrent(display, own, own, context);
    float places[6] = {-1, -1, 1, -1, 0, 1};
    GL(void, glEnableClientState, unsigned)(0x8074);
    GL(void, glVertexPointer, int, unsigned, int, const void *)(2, 0x1406, 0, places);
    void (*draw)(unsigned, int, int) = GL(void, glDrawArrays, unsigned, int, int);
    for (;;) {
        places[0] += 0.001f;
        for (int n = 0; n < 8; n++)
            draw(4, 0, 3);
        eglSwapBuffers(display, own);
    }
    return NULL;
}

static void prepare(void) {
    open_display(8);
    first = context_of(0x30a2, 2, 1, 0, NULL);
    begin(first);
    end_frame();
    GL(void, glGenTextures, int, unsigned *)(1, &texture);
    GL(void, glBindTexture, unsigned, unsigned)(0xde1, texture);
    GL(void, glTexParameteri, unsigned, unsigned, int)(0xde1, 0x2801, 0x2600);
    static unsigned char pixels[2][2][4];
    GL(void, glTexImage2D, unsigned, int, int, int, int, int, unsigned, unsigned, const void *)
    (0xde1, 0, 0x1908, 2, 2, 0, 0x1908, 0x1401, pixels);
    end_frame();
    eglMakeCurrent(display, NULL, NULL, NULL);
}

/* A program's own end of a crash. */
static void handler(int signal) {
    (void)signal;
    _exit(9);
}

int main(int count, char **words) {
    const char *end = count > 1 ? words[1] : "";
    if (!strcmp(end, "children")) {
        for (int child = 0; child < 2; child++)
            if (fork() == 0) {
                prepare();
                return 0;
            }
        while (wait(NULL) > 0)
            ;
        return 0;
    }
    prepare();
    pthread_t threads[9];
    if (!strncmp(end, "race", 4)) {
        for (int n = 0; n < 9; n++)
            pthread_create(&threads[n], NULL, racing, NULL);
        usleep(800000);
        raise(!strcmp(end, "race and kill") ? SIGKILL : SIGTERM);
    }
    for (intptr_t n = 0; n < THREADS; n++)
        pthread_create(&threads[n], NULL, drawing, (void *)n);
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], NULL);
    if (!strcmp(end, "abort"))
        abort();
    if (!strcmp(end, "segment"))
        *(volatile int *)8 = 1;
    if (!strcmp(end, "terminate"))
        raise(SIGTERM);
    if (!strcmp(end, "_exit"))
        _exit(7);
    if (!strcmp(end, "exec"))
        execlp("sh", "sh", "-c", "exit 3", NULL);
    if (!strcmp(end, "fork")) {
        /* A child that ends without drawing leaves its parent's trace alone. */
        int status;
        if (fork() == 0)
            exit(0);
        wait(&status);
        begin(first);
        end_frame();
    }
    if (!strcmp(end, "kill")) {
        sleep(1);
        raise(SIGKILL);
    }
    if (!strcmp(end, "handler"))
        signal(SIGSEGV, handler);
    if (!strcmp(end, "handler") || !strcmp(end, "return in the driver")) {
        /* A call that crashes in the driver: it is the last of the trace. */
        begin(first);
        GL(void, glVertexPointer, int, unsigned, int, const void *)(2, 0x1406, 0, NULL);
        GL(void, glTexImage2D, unsigned, int, int, int, int, int, unsigned, unsigned, const void *)
        (0xde1, 0, 0x1908, 2, 2, 0, 0x1908, 0x1401, (void *)64);
    }
    return 0;
}
