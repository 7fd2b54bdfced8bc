/* What the programs here share: a context without a window, the functions of OpenGL by name, and frames as files.
   No headers of OpenGL are needed. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *EGLDisplay, *EGLConfig, *EGLContext, *EGLSurface;
extern EGLDisplay eglGetPlatformDisplay(unsigned, void *, const intptr_t *);
extern unsigned eglInitialize(EGLDisplay, int *, int *);
extern unsigned eglChooseConfig(EGLDisplay, const int *, EGLConfig *, int, int *);
extern unsigned eglBindAPI(unsigned);
extern EGLContext eglCreateContext(EGLDisplay, EGLConfig, EGLContext, const int *);
extern EGLSurface eglCreatePbufferSurface(EGLDisplay, EGLConfig, const int *);
extern unsigned eglMakeCurrent(EGLDisplay, EGLSurface, EGLSurface, EGLContext);
extern unsigned eglSwapBuffers(EGLDisplay, EGLSurface);
extern unsigned eglDestroyContext(EGLDisplay, EGLContext);
extern void *eglGetProcAddress(const char *);

enum { WIDTH = 64, HEIGHT = 48 };

/* A function by its name. */
#define GL(result, name, ...) ((result(*)(__VA_ARGS__))function(#name))
static void *function(const char *name) {
    void *found = eglGetProcAddress(name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(3);
    }
    return found;
}

static EGLDisplay display;
static EGLConfig config;
static EGLSurface surface;
static int frames;

static EGLContext context_of(unsigned api, int major, int minor, int profile, EGLContext shared) {
    eglBindAPI(api);
    int list[] = {0x3098, major, 0x30fb, minor, 0x30fd, profile, 0x3038};
    if (!profile)
        list[4] = 0x3038;
    EGLContext context = eglCreateContext(display, config, shared, list);
    if (!context) {
        fprintf(stderr, "no context %d.%d\n", major, minor);
        exit(3);
    }
    return context;
}

static EGLSurface surface_of(int width, int height) {
    int size[] = {0x3057, width, 0x3056, height, 0x3038};
    return eglCreatePbufferSurface(display, config, size);
}

/* Opens the display for an interface: 0x30a2 OpenGL, 0x30a0 OpenGL ES. `bits`: its renderable type. */
static void open_display(int bits) {
    display = eglGetPlatformDisplay(0x31dd, NULL, NULL);
    if (!eglInitialize(display, NULL, NULL))
        exit(3);
    int wanted[] = {0x3033, 1, 0x3040, bits, 0x3024, 8, 0x3023, 8, 0x3022, 8, 0x3021, 8, 0x3025, 24, 0x3038}, count;
    if (!eglChooseConfig(display, wanted, &config, 1, &count) || count < 1)
        exit(3);
    surface = surface_of(WIDTH, HEIGHT);
}

static void clear(void) {
    GL(void, glClearColor, float, float, float, float)(0.1f * (frames % 7), 0.2f, 0.1f * (frames % 5), 1);
    GL(void, glClear, unsigned)(0x4100);
}

/* A new surface has anything in it. */
static void begin(EGLContext context) {
    if (!eglMakeCurrent(display, surface, surface, context))
        exit(3);
    clear();
}

/* Writes what is drawn to `frame.N`, top row first, and ends the frame. */
static void end_frame(void) {
    static unsigned char pixels[HEIGHT][WIDTH][4];
    GL(void, glReadPixels, int, int, int, int, unsigned, unsigned, void *)(0, 0, WIDTH, HEIGHT, 0x1908, 0x1401, pixels);
    unsigned error = GL(unsigned, glGetError, void)();
    if (error) {
        fprintf(stderr, "frame %d: error 0x%x\n", frames, error);
        exit(4);
    }
    char name[32];
    snprintf(name, sizeof name, "frame.%03d", frames++);
    FILE *file = fopen(name, "wb");
    for (int row = HEIGHT - 1; row >= 0; row--)
        for (int column = 0; column < WIDTH; column++)
            fwrite(pixels[row][column], 1, 3, file);
    fclose(file);
    eglSwapBuffers(display, surface);
    clear();
}

__attribute__((unused)) static unsigned shader(unsigned program, unsigned kind, int count, const char **text, const int *lengths) {
    unsigned name = GL(unsigned, glCreateShader, unsigned)(kind);
    GL(void, glShaderSource, unsigned, int, const char **, const int *)(name, count, text, lengths);
    GL(void, glCompileShader, unsigned)(name);
    int status = 0;
    GL(void, glGetShaderiv, unsigned, unsigned, int *)(name, 0x8b81, &status);
    if (!status) {
        char log[1000];
        GL(void, glGetShaderInfoLog, unsigned, int, int *, char *)(name, sizeof log, NULL, log);
        fprintf(stderr, "%s\n", log);
        exit(4);
    }
    GL(void, glAttachShader, unsigned, unsigned)(program, name);
    return name;
}

__attribute__((unused)) static unsigned program_of(const char *vertex, const char *fragment) {
    unsigned program = GL(unsigned, glCreateProgram, void)();
    shader(program, 0x8b31, 1, &vertex, NULL);
    /* In pieces, of which one ends by its length. */
    const char *pieces[] = {fragment, "this is not read"};
    int lengths[] = {(int)strlen(fragment), 0};
    shader(program, 0x8b30, 2, pieces, lengths);
    GL(void, glLinkProgram, unsigned)(program);
    int status = 0;
    GL(void, glGetProgramiv, unsigned, unsigned, int *)(program, 0x8b82, &status);
    if (!status)
        exit(4);
    GL(void, glUseProgram, unsigned)(program);
    return program;
}
