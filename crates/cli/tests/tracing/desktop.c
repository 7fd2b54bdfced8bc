/* OpenGL with a compatibility profile: what the driver reads of the program's memory, in all the ways there are. */
#include "gl.h"

#define ENABLE(what) GL(void, glEnable, unsigned)(what)
#define DISABLE(what) GL(void, glDisable, unsigned)(what)
#define ARRAY(what) GL(void, glEnableClientState, unsigned)(what)
#define NO_ARRAY(what) GL(void, glDisableClientState, unsigned)(what)
enum { TRIANGLES = 4, STRIP = 5, FLOAT = 0x1406, UBYTE = 0x1401, USHORT = 0x1403, UINT = 0x1405 };
enum { VERTICES = 0x8074, COLORS = 0x8076, COORDS = 0x8078, NORMALS = 0x8075, VBO = 0x8892, IBO = 0x8893 };

static void vertex_pointer(int size, int stride, const void *at) {
    GL(void, glVertexPointer, int, unsigned, int, const void *)(size, FLOAT, stride, at);
}

static void color_pointer(int size, unsigned kind, int stride, const void *at) {
    GL(void, glColorPointer, int, unsigned, int, const void *)(size, kind, stride, at);
}

static void draw_arrays(unsigned mode, int first, int count) {
    GL(void, glDrawArrays, unsigned, int, int)(mode, first, count);
}

static void draw_elements(unsigned mode, int count, unsigned kind, const void *at) {
    GL(void, glDrawElements, unsigned, int, unsigned, const void *)(mode, count, kind, at);
}

static unsigned buffer(unsigned target, size_t bytes, const void *data) {
    unsigned name;
    GL(void, glGenBuffers, int, unsigned *)(1, &name);
    GL(void, glBindBuffer, unsigned, unsigned)(target, name);
    GL(void, glBufferData, unsigned, ptrdiff_t, const void *, unsigned)(target, bytes, data, 0x88e8);
    return name;
}

static void bind(unsigned target, unsigned name) {
    GL(void, glBindBuffer, unsigned, unsigned)(target, name);
}

/* Arrays in memory that is freed and written to between draws. */
static void arrays(void) {
    float *vertices = malloc(6 * 2 * sizeof *vertices);
    unsigned char colors[6][4];
    ARRAY(VERTICES);
    ARRAY(COLORS);
    vertex_pointer(2, 0, vertices);
    color_pointer(4, UBYTE, 0, colors);
    for (int turn = 0; turn < 3; turn++) {
        for (int n = 0; n < 12; n++)
            vertices[n] = ((n * 7 + turn * 5) % 11) / 5.5f - 1;
        for (int n = 0; n < 24; n++)
            colors[n / 4][n % 4] = 40 + n * 9 + turn * 3;
        draw_arrays(TRIANGLES, turn, 3);
    }
    free(vertices);
    end_frame();

    struct {
        float color[3], place[3];
        int unused;
    } both[8];
    for (int n = 0; n < 8; n++)
        for (int at = 0; at < 3; at++)
            both[n].color[at] = ((n + at) % 4) / 3.f, both[n].place[at] = at == 2 ? 0 : ((n * 5 + at * 3) % 8) / 4.f - 1;
    vertex_pointer(3, sizeof both[0], both[0].place);
    color_pointer(3, FLOAT, sizeof both[0], both[0].color);
    unsigned char bytes[] = {7, 2, 5};
    unsigned short shorts[] = {1, 6, 3, 0, 4, 2};
    unsigned ints[] = {3, 4, 5};
    draw_elements(TRIANGLES, 3, UBYTE, bytes);
    draw_elements(TRIANGLES, 6, USHORT, shorts);
    GL(void, glDrawRangeElements, unsigned, unsigned, unsigned, int, unsigned, const void *)
    (TRIANGLES, 3, 5, 3, UINT, ints);
    end_frame();

    /* Indices in a buffer, vertices not; then the other way round. */
    unsigned indices = buffer(IBO, sizeof shorts, shorts);
    draw_elements(TRIANGLES, 3, USHORT, (void *)6);
    bind(IBO, 0);
    unsigned data = buffer(VBO, sizeof both, both);
    vertex_pointer(3, sizeof both[0], (void *)offsetof(typeof(both[0]), place));
    bind(VBO, 0);
    draw_elements(TRIANGLES, 3, UBYTE, bytes);
    GL(void, glDrawElementsBaseVertex, unsigned, int, unsigned, const void *, int)(TRIANGLES, 3, USHORT, shorts + 3, 1);
    GL(void, glDeleteBuffers, int, const unsigned *)(1, &indices);
    GL(void, glDeleteBuffers, int, const unsigned *)(1, &data);
    end_frame();

    vertex_pointer(3, sizeof both[0], both[0].place);
    int firsts[] = {0, 4}, counts[] = {3, 4};
    GL(void, glMultiDrawArrays, unsigned, const int *, const int *, int)(STRIP, firsts, counts, 2);
    const void *lists[] = {shorts, shorts + 3};
    int three[] = {3, 3};
    GL(void, glMultiDrawElements, unsigned, const int *, unsigned, const void *const *, int)
    (TRIANGLES, three, USHORT, lists, 2);
    /* A strip that begins again. */
    unsigned short restart[] = {0, 1, 2, 0xffff, 5, 6, 7};
    ENABLE(0x8f9d);
    GL(void, glPrimitiveRestartIndex, unsigned)(0xffff);
    draw_elements(STRIP, 7, USHORT, restart);
    DISABLE(0x8f9d);
    end_frame();

    NO_ARRAY(COLORS);
    float interleaved[4][6] = {{1, 0, 0, -1, -1, 0}, {0, 1, 0, 1, -1, 0}, {0, 0, 1, 0, 1, 0}, {1, 1, 0, 1, 1, 0}};
    GL(void, glInterleavedArrays, unsigned, int, const void *)(0x2a24, 0, interleaved);
    draw_arrays(STRIP, 0, 4);
    NO_ARRAY(COLORS);
    NO_ARRAY(VERTICES);
    end_frame();

    /* One by one, of all kinds. */
    unsigned char tints[4][4] = {{255, 0, 0, 9}, {0, 255, 128, 9}, {20, 0, 255, 9}, {255, 255, 0, 9}};
    short corners[4][2] = {{-1, -1}, {1, -1}, {-1, 1}, {1, 1}};
    ARRAY(COLORS);
    ARRAY(VERTICES);
    color_pointer(3, UBYTE, 4, tints);
    GL(void, glVertexPointer, int, unsigned, int, const void *)(2, 0x1402, 0, corners);
    for (int turn = 0; turn < 2; turn++) {
        void (*element)(int) = GL(void, glArrayElement, int);
        GL(void, glBegin, unsigned)(TRIANGLES);
        for (int n = 0; n < 3; n++)
            element(turn + n);
        GL(void, glEnd, void)();
        NO_ARRAY(COLORS);
    }
    NO_ARRAY(VERTICES);
    end_frame();

    /* What a list takes from memory it keeps. */
    unsigned list = GL(unsigned, glGenLists, int)(2);
    float places[] = {-1, -1, 1, -1, 0, 0.5f};
    ARRAY(VERTICES);
    vertex_pointer(2, 0, places);
    GL(void, glNewList, unsigned, unsigned)(list, 0x1300);
    draw_arrays(TRIANGLES, 0, 3);
    GL(void, glEndList, void)();
    memset(places, 0, sizeof places);
    NO_ARRAY(VERTICES);
    GL(void, glNewList, unsigned, unsigned)(list + 1, 0x1300);
    GL(void, glColor3ub, unsigned char, unsigned char, unsigned char)(255, 0, 200);
    GL(void, glEndList, void)();
    GL(void, glListBase, unsigned)(list);
    unsigned char names[] = {1, 0};
    GL(void, glCallLists, int, unsigned, const void *)(2, UBYTE, names);
    end_frame();
}

static unsigned texture(void) {
    unsigned name;
    GL(void, glGenTextures, int, unsigned *)(1, &name);
    GL(void, glBindTexture, unsigned, unsigned)(0xde1, name);
    GL(void, glTexParameteri, unsigned, unsigned, int)(0xde1, 0x2801, 0x2600);
    GL(void, glTexParameteri, unsigned, unsigned, int)(0xde1, 0x2800, 0x2600);
    return name;
}

static void image(int width, int height, unsigned format, unsigned kind, const void *pixels) {
    GL(void, glTexImage2D, unsigned, int, int, int, int, int, unsigned, unsigned, const void *)
    (0xde1, 0, 0x1908, width, height, 0, format, kind, pixels);
}

static void store(unsigned name, int value) {
    GL(void, glPixelStorei, unsigned, int)(name, value);
}

static void quad(void) {
    static const float places[] = {-1, -1, 1, -1, -1, 1, 1, 1}, coords[] = {0, 0, 1, 0, 0, 1, 1, 1};
    ARRAY(VERTICES);
    vertex_pointer(2, 0, places);
    for (int unit = 1; unit >= 0; unit--) {
        GL(void, glClientActiveTexture, unsigned)(0x84c0 + unit);
        ARRAY(COORDS);
        GL(void, glTexCoordPointer, int, unsigned, int, const void *)(2, FLOAT, 0, coords);
    }
    GL(void, glColor3f, float, float, float)(1, 1, 1);
    draw_arrays(STRIP, 0, 4);
}

static void images(void) {
    unsigned char bytes[64 * 64];
    for (size_t n = 0; n < sizeof bytes; n++)
        bytes[n] = n * 37 + n / 64;
    ENABLE(0xde1);
    texture();
    /* Rows of 9 bytes, padded to 12; then parts of longer rows. */
    image(3, 2, 0x1907, UBYTE, bytes);
    quad();
    end_frame();
    store(0xcf5, 1);
    store(0xcf2, 20);
    store(0xcf4, 3);
    store(0xcf3, 5);
    image(5, 7, 0x1908, UBYTE, bytes);
    GL(void, glTexSubImage2D, unsigned, int, int, int, int, int, unsigned, unsigned, const void *)
    (0xde1, 0, 1, 1, 2, 3, 0x80e1, 0x8367, bytes);
    quad();
    store(0xcf2, 0);
    store(0xcf4, 0);
    store(0xcf3, 0);
    end_frame();
    image(4, 4, 0x1907, 0x8363, bytes);
    /* A second unit, with coordinates of its own. */
    GL(void, glActiveTexture, unsigned)(0x84c1);
    ENABLE(0xde1);
    texture();
    image(2, 2, 0x1909, FLOAT, (float[]){0.2f, 0.9f, 1, 0.5f});
    quad();
    end_frame();
    DISABLE(0xde1);
    GL(void, glActiveTexture, unsigned)(0x84c0);
    /* From a buffer: the pointer is an offset. */
    unsigned pixels = buffer(0x88ec, sizeof bytes, bytes);
    image(8, 8, 0x1908, UBYTE, (void *)16);
    bind(0x88ec, 0);
    quad();
    end_frame();
    GL(void, glDeleteBuffers, int, const unsigned *)(1, &pixels);
    texture();
    GL(void, glCompressedTexImage2D, unsigned, int, unsigned, int, int, int, int, const void *)
    (0xde1, 0, 0x83f1, 8, 8, 0, 32, bytes);
    quad();
    end_frame();
    DISABLE(0xde1);
    GL(void, glRasterPos2f, float, float)(-0.9f, -0.9f);
    GL(void, glDrawPixels, int, int, unsigned, unsigned, const void *)(30, 20, 0x1907, UBYTE, bytes);
    GL(void, glColor3f, float, float, float)(0, 1, 1);
    GL(void, glRasterPos2f, float, float)(0, 0);
    GL(void, glBitmap, int, int, float, float, float, float, const unsigned char *)(19, 9, 0, 0, 0, 0, bytes);
    GL(void, glPolygonStipple, const unsigned char *)(bytes);
    ENABLE(0xb42);
    GL(void, glRectf, float, float, float, float)(-0.5f, 0, 0.9f, 0.9f);
    DISABLE(0xb42);
    end_frame();
    GL(void, glMap1f, unsigned, float, float, int, int, const float *)
    (0xd97, 0, 1, 4, 3, (float[]){-1, 0, 0, 9, 0, 1, 0, 9, 1, -1, 0});
    ENABLE(0xd97);
    GL(void, glLineWidth, float)(3);
    GL(void, glMapGrid1f, int, float, float)(10, 0, 1);
    GL(void, glEvalMesh1, unsigned, int, int)(0x1b01, 0, 10);
    DISABLE(0xd97);
    float patch[2][2][3] = {{{-1, -1, 0}, {-1, 0, 0}}, {{0, -1, 0}, {0.5f, 0.5f, 0}}};
    GL(void, glMap2f, unsigned, float, float, int, int, float, float, int, int, const float *)
    (0xdb7, 0, 1, 6, 2, 0, 1, 3, 2, &patch[0][0][0]);
    ENABLE(0xdb7);
    GL(void, glMapGrid2f, int, float, float, int, float, float)(4, 0, 1, 4, 0, 1);
    GL(void, glEvalMesh2, unsigned, int, int, int, int)(0x1b02, 0, 4, 0, 4);
    DISABLE(0xdb7);
    end_frame();
}

static void *map(unsigned target, ptrdiff_t from, ptrdiff_t bytes, unsigned access) {
    void *found = GL(void *, glMapBufferRange, unsigned, ptrdiff_t, ptrdiff_t, unsigned)(target, from, bytes, access);
    if (!found)
        exit(4);
    return found;
}

static void fill(float *to, int turn) {
    for (int n = 0; n < 6; n++)
        to[n] = ((n * 5 + turn * 3) % 9) / 4.5f - 1;
}

static void mappings(void) {
    float places[6 * 600];
    memset(places, 0, sizeof places);
    unsigned data = buffer(VBO, sizeof places, places);
    ARRAY(VERTICES);
    vertex_pointer(2, 0, NULL);
    float *all = GL(void *, glMapBuffer, unsigned, unsigned)(VBO, 0x88b9);
    fill(all, 1);
    GL(unsigned char, glUnmapBuffer, unsigned)(VBO);
    draw_arrays(TRIANGLES, 0, 3);
    end_frame();
    float *part = map(VBO, 24, 48, 2 | 0x10);
    fill(part, 2);
    fill(part + 6, 3);
    /* Only the second is said to be written. */
    GL(void, glFlushMappedBufferRange, unsigned, ptrdiff_t, ptrdiff_t)(VBO, 24, 24);
    GL(unsigned char, glUnmapBuffer, unsigned)(VBO);
    draw_arrays(TRIANGLES, 6, 3);
    float *ranged = map(VBO, 4800, 24, 2 | 4);
    fill(ranged, 4);
    GL(unsigned char, glUnmapBuffer, unsigned)(VBO);
    draw_arrays(TRIANGLES, 600, 3);
    end_frame();
    GL(void, glDeleteBuffers, int, const unsigned *)(1, &data);

    /* It stays mapped while the driver reads. */
    unsigned stays;
    GL(void, glGenBuffers, int, unsigned *)(1, &stays);
    bind(VBO, stays);
    GL(void, glBufferStorage, unsigned, ptrdiff_t, const void *, unsigned)(VBO, sizeof places, NULL, 2 | 0x40 | 0x80);
    float *live = map(VBO, 0, sizeof places, 2 | 0x40 | 0x80);
    vertex_pointer(2, 0, NULL);
    for (int turn = 0; turn < 4; turn++) {
        int at = turn * 1200 / 2;
        fill(live + at, turn + 5);
        GL(void, glColor3f, float, float, float)(turn / 4.f, 1, 1 - turn / 4.f);
        draw_arrays(TRIANGLES, at / 2, 3);
        if (turn % 2)
            end_frame();
    }
    /* Deleted while it is mapped; what follows is not read. */
    GL(void, glDeleteBuffers, int, const unsigned *)(1, &stays);
    bind(VBO, 0);
    GL(void, glFinish, void)();
    unsigned named;
    GL(void, glCreateBuffers, int, unsigned *)(1, &named);
    GL(void, glNamedBufferData, unsigned, ptrdiff_t, const void *, unsigned)(named, 24, NULL, 0x88e0);
    fill(GL(void *, glMapNamedBuffer, unsigned, unsigned)(named, 0x88b9), 9);
    GL(unsigned char, glUnmapNamedBuffer, unsigned)(named);
    bind(VBO, named);
    vertex_pointer(2, 0, NULL);
    draw_arrays(TRIANGLES, 0, 3);
    bind(VBO, 0);
    NO_ARRAY(VERTICES);
    end_frame();
}

static void programs(void) {
    unsigned program = program_of("#version 120\n"
                                  "attribute vec2 place; attribute vec2 shift; attribute vec3 tint;\n"
                                  "uniform mat2 turn; varying vec3 color;\n"
                                  "void main() { color = tint; gl_Position = vec4(turn * place + shift, 0, 1); }",
                                  "#version 120\n"
                                  "uniform vec3 scale[2]; varying vec3 color;\n"
                                  "void main() { gl_FragColor = vec4(color * scale[0] + scale[1], 1); }");
    int (*where)(unsigned, const char *) = GL(int, glGetUniformLocation, unsigned, const char *);
    int (*which)(unsigned, const char *) = GL(int, glGetAttribLocation, unsigned, const char *);
    GL(void, glUniformMatrix2fv, int, int, unsigned char, const float *)
    (where(program, "turn"), 1, 0, (float[]){0.5f, 0.1f, -0.1f, 0.5f});
    GL(void, glUniform3fv, int, int, const float *)(where(program, "scale"), 2, (float[]){1, 0.5f, 0.5f, 0, 0.2f, 0.4f});
    float place[] = {-1, -1, 1, -1, 0, 1};
    float shift[] = {-0.5f, 0, 0.5f, 0.2f, 0, -0.5f};
    unsigned char tint[][4] = {{255, 0, 0, 0}, {0, 255, 0, 0}, {255, 255, 255, 0}};
    void (*pointer)(unsigned, int, unsigned, unsigned char, int, const void *) =
        GL(void, glVertexAttribPointer, unsigned, int, unsigned, unsigned char, int, const void *);
    void (*enable)(unsigned) = GL(void, glEnableVertexAttribArray, unsigned);
    void (*divisor)(unsigned, unsigned) = GL(void, glVertexAttribDivisor, unsigned, unsigned);
    const char *names[] = {"place", "shift", "tint"};
    const void *at[] = {place, shift, tint};
    for (int n = 0; n < 3; n++) {
        unsigned index = which(program, names[n]);
        pointer(index, n == 2 ? 3 : 2, n == 2 ? UBYTE : FLOAT, n == 2, n == 2 ? 4 : 0, at[n]);
        divisor(index, n == 1 ? 1 : n == 2 ? 2 : 0);
        enable(index);
    }
    GL(void, glDrawArraysInstanced, unsigned, int, int, int)(TRIANGLES, 0, 3, 3);
    end_frame();
    unsigned short indices[] = {2, 1, 0};
    GL(void, glDrawElementsInstancedBaseInstance, unsigned, int, unsigned, const void *, int, unsigned)
    (TRIANGLES, 3, USHORT, indices, 1, 2);
    end_frame();
    for (int n = 0; n < 3; n++) {
        divisor(which(program, names[n]), 0);
        GL(void, glDisableVertexAttribArray, unsigned)(which(program, names[n]));
    }
    GL(void, glUseProgram, unsigned)(0);
}

int main(void) {
    open_display(8);
    begin(context_of(0x30a2, 4, 5, 2, NULL));
    end_frame();
    arrays();
    images();
    mappings();
    programs();
    return 0;
}
