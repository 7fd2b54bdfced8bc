/* Replays a trace without a window: EGL and OpenGL are loaded when it starts. */
#define _GNU_SOURCE
#include "replay.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "replay: %s\n", what);
    exit(2);
}

static void *grown(void *old, size_t bytes)
{
    void *room = realloc(old, bytes);
    if (room == NULL) fail("out of memory");
    return room;
}

/* Data and numbers. */

static uint8_t *data;

void *blob(uint64_t offset)
{
    return offset <= data_bytes ? data + offset : data;
}

static void open_data(const char *program)
{
    const char *slash = strrchr(program, '/');
    size_t folder = slash ? (size_t)(slash - program) + 1 : 0;
    char *path = grown(NULL, folder + sizeof "data.bin");
    memcpy(path, program, folder);
    strcpy(path + folder, "data.bin");
    int file = open(path, O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0 || (uint64_t)about.st_size < data_bytes) fail("data.bin cannot be read");
    if (data_bytes > 0) {
        /* The program's own copy: whoever is given a pointer may write. */
        data = mmap(NULL, data_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED) fail("data.bin cannot be mapped");
    }
    close(file);
    free(path);
}

float float_of(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

double double_of(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* A map from what the trace calls things to what they are here. */

struct entry { uint64_t owner, traced, real; int kind; char is_used; };
static struct entry *entries;
static size_t entries_room, entries_used;

static struct entry *find(int kind, uint64_t owner, uint64_t traced)
{
    uint64_t hash = (traced * 0x9e3779b97f4a7c15u) ^ (owner * 0xc2b2ae3d27d4eb4fu) ^ ((uint64_t)kind << 40);
    hash ^= hash >> 29;
    hash *= 0xbf58476d1ce4e5b9u;
    for (size_t at = (hash >> 20) & (entries_room - 1);; at = (at + 1) & (entries_room - 1)) {
        struct entry *entry = &entries[at];
        if (!entry->is_used || (entry->kind == kind && entry->owner == owner && entry->traced == traced)) return entry;
    }
}

static void put(int kind, uint64_t owner, uint64_t traced, uint64_t real)
{
    if (entries_used * 2 >= entries_room) {
        struct entry *old = entries;
        size_t room = entries_room;
        entries_room = room ? room * 2 : 1024;
        entries = calloc(entries_room, sizeof *entries);
        if (entries == NULL) fail("out of memory");
        for (size_t at = 0; at < room; at++)
            if (old[at].is_used) *find(old[at].kind, old[at].owner, old[at].traced) = old[at];
        free(old);
    }
    struct entry *entry = find(kind, owner, traced);
    if (!entry->is_used) entries_used++;
    *entry = (struct entry){owner, traced, real, kind, 1};
}

static const uint64_t *get(int kind, uint64_t owner, uint64_t traced)
{
    if (entries_room == 0) return NULL;
    struct entry *entry = find(kind, owner, traced);
    return entry->is_used ? &entry->real : NULL;
}

/* Contexts. */

typedef void *Egl;
static Egl (*egl_get_proc)(const char *);
static unsigned (*egl_bind_api)(unsigned);
static unsigned (*egl_choose)(Egl, const int *, Egl *, int, int *);
static Egl (*egl_create_context)(Egl, Egl, Egl, const int *);
static Egl (*egl_create_pbuffer)(Egl, Egl, const int *);
static unsigned (*egl_make_current)(Egl, Egl, Egl, Egl);
static unsigned (*egl_destroy_context)(Egl, Egl);
static Egl display, library;

struct context { Egl real; int group, api, major, minor, profile, is_known; GLuint program; GLenum window_buffer; };
static struct context *contexts;
static int contexts_count, current = -1, current_drawable = -1;
static Egl *surfaces[2];

static struct context *context_at(int number)
{
    if (number >= contexts_count) {
        contexts = grown(contexts, (size_t)(number + 1) * sizeof *contexts);
        memset(contexts + contexts_count, 0, (size_t)(number + 1 - contexts_count) * sizeof *contexts);
        for (int at = contexts_count; at <= number; at++) contexts[at].group = at;
        contexts_count = number + 1;
    }
    return &contexts[number];
}

/* Objects that contexts do not share: the kinds' numbers are in functions.c. */
extern const unsigned char is_shared[];

static uint64_t owner_of(int kind)
{
    if (current < 0) return 0;
    return is_shared[kind] ? (uint64_t)contexts[current].group : (uint64_t)current | 1ull << 40;
}

GLuint object(int kind, uint64_t traced)
{
    const uint64_t *real = traced ? get(kind, owner_of(kind), traced) : NULL;
    return real ? (GLuint)*real : (GLuint)traced;
}

void made(int kind, uint64_t traced, GLuint real)
{
    if (traced && real) put(kind, owner_of(kind), traced, real);
}

void made_many(int kind, uint32_t count, const GLuint *traced, const GLuint *real)
{
    for (uint32_t at = 0; at < count; at++) made(kind, traced[at], real[at]);
}

void made_range(int kind, uint64_t traced, uint32_t count, GLuint real)
{
    for (uint32_t at = 0; at < count; at++) made(kind, traced + at, real + at);
}

enum { SYNC = 102 };

GLsync sync_object(uint64_t traced)
{
    const uint64_t *real = get(SYNC, 0, traced);
    return real ? (GLsync)(uintptr_t)*real : NULL;
}

void made_sync(uint64_t traced, GLsync real) { put(SYNC, 0, traced, (uintptr_t)real); }

void forget_sync(uint64_t traced)
{
    if (get(SYNC, 0, traced)) put(SYNC, 0, traced, 0);
}

void used_program(GLuint traced)
{
    if (current >= 0) contexts[current].program = traced;
}

/* Programs are shared: their group and name together are the owner. */
static uint64_t program_owner(GLuint program)
{
    return (uint64_t)(current < 0 ? 0 : contexts[current].group) << 32 | program;
}

void location_is(GLuint program, GLint traced, GLint real)
{
    put(LOCATION, program_owner(program), (uint64_t)traced, (uint64_t)(int64_t)real);
}

GLint location_of(GLuint program, GLint traced)
{
    if (traced < 0) return traced;
    /* Elements of an array follow its first: that is the nearest location before that was asked for. */
    for (GLint back = 0; back <= traced && back < 1024; back++) {
        const uint64_t *real = get(LOCATION, program_owner(program), (uint64_t)(traced - back));
        if (real) return (GLint)(int64_t)*real < 0 ? -1 : (GLint)*real + back;
    }
    return traced;
}

GLint location(GLint traced) { return location_of(current < 0 ? 0 : contexts[current].program, traced); }

void block_is(GLuint program, GLuint traced, GLuint real) { put(BLOCK, program_owner(program), traced, real); }

GLuint block_of(GLuint program, GLuint traced)
{
    const uint64_t *real = get(BLOCK, program_owner(program), traced);
    return real ? (GLuint)*real : traced;
}

/* OpenGL, as far as the runtime itself calls it. */

static void (*gl_get)(GLenum, GLint *);
static GLenum (*gl_error)(void);
static void (*gl_flush)(void);
static void (*gl_bind_framebuffer)(GLenum, GLuint);
static void (*gl_read_buffer)(GLenum);
static void (*gl_bind_buffer)(GLenum, GLuint);
static void (*gl_pixel_store)(GLenum, GLint);
static void (*gl_read_pixels)(GLint, GLint, GLint, GLint, GLenum, GLenum, void *);
static void (*gl_buffer_parameter)(GLenum, GLenum, GLint *);
static void (*gl_named_buffer_parameter)(GLuint, GLenum, GLint *);

static GLint state(GLenum name)
{
    GLint value = 0;
    gl_get(name, &value);
    return value;
}

/* Errors of what the runtime asks must not be found by the calls of the trace, nor the other way round. */
static void clear_errors(void)
{
    for (int at = 0; at < 16 && gl_error() != 0; at++) {}
}

static void absent(void) {}

static void *procedure(const char *name)
{
    void *found = egl_get_proc(name);
    if (found == NULL) found = dlsym(RTLD_DEFAULT, name);
    return found;
}

static void load_functions(void)
{
    for (const struct function *one = functions; one->name; one++) {
        *one->place = procedure(one->name);
        if (*one->place == NULL) {
            fprintf(stderr, "replay: %s is not there: its calls do nothing\n", one->name);
            *(void (**)(void))one->place = absent;
        }
    }
    const struct function own[] = {
        {"glGetIntegerv", (void **)&gl_get}, {"glGetError", (void **)&gl_error}, {"glFlush", (void **)&gl_flush},
        {"glBindFramebuffer", (void **)&gl_bind_framebuffer}, {"glReadBuffer", (void **)&gl_read_buffer},
        {"glBindBuffer", (void **)&gl_bind_buffer}, {"glPixelStorei", (void **)&gl_pixel_store},
        {"glReadPixels", (void **)&gl_read_pixels}, {"glGetBufferParameteriv", (void **)&gl_buffer_parameter},
        {"glGetNamedBufferParameteriv", (void **)&gl_named_buffer_parameter}, {NULL, NULL}};
    for (const struct function *one = own; one->name; one++) {
        *one->place = procedure(one->name);
        if (*one->place == NULL) fail(one->name);
    }
}

static void open_display(void)
{
    library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) fail("libEGL.so.1 is not installed");
    const struct function own[] = {
        {"eglGetProcAddress", (void **)&egl_get_proc}, {"eglBindAPI", (void **)&egl_bind_api},
        {"eglChooseConfig", (void **)&egl_choose}, {"eglCreateContext", (void **)&egl_create_context},
        {"eglCreatePbufferSurface", (void **)&egl_create_pbuffer}, {"eglMakeCurrent", (void **)&egl_make_current},
        {"eglDestroyContext", (void **)&egl_destroy_context}, {NULL, NULL}};
    for (const struct function *one = own; one->name; one++) {
        *one->place = dlsym(library, one->name);
        if (*one->place == NULL) fail(one->name);
    }
    Egl (*get_platform)(unsigned, Egl, const int *) = (Egl (*)(unsigned, Egl, const int *))egl_get_proc("eglGetPlatformDisplayEXT");
    Egl (*get_default)(Egl) = (Egl (*)(Egl))dlsym(library, "eglGetDisplay");
    unsigned (*initialize)(Egl, int *, int *) = (unsigned (*)(Egl, int *, int *))dlsym(library, "eglInitialize");
    if (initialize == NULL) fail("eglInitialize");
    /* 0x31DD: EGL_PLATFORM_SURFACELESS_MESA. */
    display = get_platform ? get_platform(0x31DD, NULL, NULL) : NULL;
    if (display == NULL || !initialize(display, NULL, NULL)) {
        display = get_default ? get_default(NULL) : NULL;
        if (display == NULL || !initialize(display, NULL, NULL)) fail("no display of EGL");
    }
}

static Egl config_for(int api)
{
    /* Surface type: pbuffer; kind: OpenGL or OpenGL ES 2; eight bits a color, depth 24, stencil 8. */
    const int wanted[] = {0x3033, 1, 0x3040, api == API_ES ? 4 : 8, 0x3024, 8, 0x3023, 8, 0x3022, 8, 0x3021, 8, 0x3025, 24, 0x3026, 8, 0x3038};
    Egl config = NULL;
    int count = 0;
    if (!egl_choose(display, wanted, &config, 1, &count) || count < 1) fail("no configuration of EGL");
    return config;
}

void new_context(int number, int share, int api, int major, int minor, int profile)
{
    struct context *context = context_at(number);
    int group = share >= 0 ? context_at(share)->group : number;
    context = context_at(number);
    *context = (struct context){.group = group, .api = api, .major = major, .minor = minor, .profile = profile, .is_known = 1};
}

void share_contexts(int first, int second)
{
    int to = context_at(first)->group, from = context_at(second)->group;
    for (int at = 0; at < contexts_count; at++)
        if (contexts[at].group == from) contexts[at].group = to;
}

static void open_context(struct context *context)
{
    Egl share = NULL;
    for (int at = 0; at < contexts_count; at++)
        if (contexts[at].real && contexts[at].group == context->group && contexts[at].api == context->api) share = contexts[at].real;
    if (!egl_bind_api(context->api == API_ES ? 0x30A0 : 0x30A2)) fail("eglBindAPI");
    int wanted[8], at = 0;
    if (context->major > 0) {
        wanted[at++] = 0x3098, wanted[at++] = context->major;
        wanted[at++] = 0x30FB, wanted[at++] = context->minor;
    }
    if (context->profile > 0 && context->api == API_GL) wanted[at++] = 0x30FD, wanted[at++] = context->profile;
    wanted[at] = 0x3038;
    context->real = egl_create_context(display, config_for(context->api), share, wanted);
    if (context->real == NULL) fail("a context cannot be made");
}

void end_context(int number)
{
    struct context *context = context_at(number);
    if (context->real == NULL) return;
    if (number == current) {
        egl_make_current(display, NULL, NULL, NULL);
        current = current_drawable = -1;
    }
    egl_destroy_context(display, context->real);
    context->real = NULL;
}

void make_current(int number, int drawable)
{
    if (number == current && drawable == current_drawable) return;
    if (current >= 0) gl_flush();
    struct context *context = context_at(number);
    int is_new = context->real == NULL;
    if (is_new) open_context(context);
    if (drawable < 0 || drawable >= drawables_count) drawable = 0;
    if (surfaces[context->api] == NULL) {
        surfaces[context->api] = calloc((size_t)drawables_count, sizeof(Egl));
        if (surfaces[context->api] == NULL) fail("out of memory");
    }
    Egl *surface = &surfaces[context->api][drawable];
    if (*surface == NULL) {
        const int size[] = {0x3057, drawables[drawable].width, 0x3056, drawables[drawable].height, 0x3038};
        *surface = egl_create_pbuffer(display, config_for(context->api), size);
        if (*surface == NULL) fail("no room for a surface");
    }
    egl_bind_api(context->api == API_ES ? 0x30A0 : 0x30A2);
    if (!egl_make_current(display, *surface, *surface, context->real)) fail("a context cannot be made current");
    current = number, current_drawable = drawable;
    if (is_new) {
        /* 0x0C01: GL_DRAW_BUFFER. A surface without a window has one color buffer. */
        context->window_buffer = context->api == API_GL ? (GLenum)state(0x0C01) : 0;
        clear_errors();
    }
}

GLenum window_buffer(GLenum traced)
{
    GLenum here = current < 0 ? 0 : contexts[current].window_buffer;
    return traced >= 0x0400 && traced <= 0x0408 && here ? here : traced;
}

int pack_buffer(void)
{
    /* 0x88ED: GL_PIXEL_PACK_BUFFER_BINDING. */
    return current >= 0 && state(0x88ED) != 0;
}

/* Memory. */

struct region { uint64_t traced, length; uint8_t *real; GLuint buffer; int context, is_own; };
static struct region *regions;
static size_t regions_count;

static void drop(size_t at)
{
    if (regions[at].is_own) free(regions[at].real);
    regions[at] = regions[--regions_count];
}

static struct region *region_of(uint64_t traced)
{
    for (size_t at = regions_count; at-- > 0;)
        if (traced >= regions[at].traced && traced - regions[at].traced < regions[at].length) return &regions[at];
    return NULL;
}

static struct region *add_region(uint64_t traced, uint64_t length, void *real)
{
    for (size_t at = regions_count; at-- > 0;)
        if (traced < regions[at].traced + regions[at].length && regions[at].traced < traced + length) drop(at);
    regions = grown(regions, (regions_count + 1) * sizeof *regions);
    regions[regions_count] = (struct region){traced, length, real, 0, current, 0};
    return &regions[regions_count++];
}

void *address(uint64_t traced)
{
    static void *nowhere;
    struct region *region = region_of(traced);
    if (region) return region->real + (traced - region->traced);
    if (traced < 1ull << 32) return (void *)(uintptr_t)traced;
    /* Memory that the trace does not hold: zeros, far more than any call reads. */
    if (nowhere == NULL) nowhere = mmap(NULL, 1ull << 32, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return nowhere == MAP_FAILED ? NULL : nowhere;
}

/* The buffer of a target. */
static GLuint buffer_at(GLuint target, int is_name)
{
    static const GLenum bindings[][2] = {
        {0x8892, 0x8894}, {0x8893, 0x8895}, {0x88EB, 0x88ED}, {0x88EC, 0x88EF}, {0x8A11, 0x8A28}, {0x8C2A, 0x8C2A},
        {0x8C8E, 0x8C8F}, {0x8F36, 0x8F36}, {0x8F37, 0x8F37}, {0x8F3F, 0x8F43}, {0x90D2, 0x90D3}, {0x90EE, 0x90EF},
        {0x9192, 0x9193}, {0x92C0, 0x92C1}};
    if (is_name) return target;
    for (size_t at = 0; at < sizeof bindings / sizeof bindings[0]; at++)
        if (bindings[at][0] == target) return (GLuint)state(bindings[at][1]);
    return 0;
}

void mapped(uint64_t traced, void *real, int64_t length, GLuint target, int is_name)
{
    if (real == NULL || traced == 0 || current < 0) return;
    if (length < 0) {
        /* 0x8764: GL_BUFFER_SIZE. */
        GLint size = 0;
        if (is_name) gl_named_buffer_parameter(target, 0x8764, &size);
        else gl_buffer_parameter(target, 0x8764, &size);
        length = size;
    }
    if (length > 0) add_region(traced, (uint64_t)length, real)->buffer = buffer_at(target, is_name);
}

void unmapped(GLuint target, int is_name)
{
    GLuint buffer = current < 0 ? 0 : buffer_at(target, is_name);
    for (size_t at = regions_count; at-- > 0;)
        if (!regions[at].is_own && regions[at].buffer == buffer) drop(at);
}

void allocated(uint64_t traced, uint64_t length)
{
    if (traced == 0 || length == 0 || length > 1ull << 30) return;
    void *room = calloc(1, length);
    if (room == NULL) fail("out of memory");
    add_region(traced, length, room)->is_own = 1;
}

void released(uint64_t traced)
{
    struct region *region = region_of(traced);
    if (region && region->is_own && region->traced == traced) drop((size_t)(region - regions));
}

void copied(uint64_t traced, const void *from, uint64_t length)
{
    struct region *region = region_of(traced);
    if (region == NULL) return;
    uint64_t room = region->length - (traced - region->traced);
    memcpy(region->real + (traced - region->traced), from, length < room ? length : room);
}

/* Frames. */

static const char *snapshots;
static uint64_t frames;

static void snapshot(uint64_t call)
{
    struct context *context = &contexts[current];
    int width = drawables[current_drawable].width, height = drawables[current_drawable].height;
    int is_es2 = context->api == API_ES && context->major < 3;
    /* Pack alignment, row length, rows and pixels skipped, swapped bytes; all but the first are not in OpenGL ES 2. */
    const GLenum packs[] = {0x0D05, 0x0D02, 0x0D03, 0x0D04, 0x0D00};
    const GLint plain[] = {1, 0, 0, 0, 0};
    GLint before[5];
    int known = is_es2 ? 1 : context->api == API_ES ? 4 : 5;
    clear_errors();
    /* 0x8CAA, 0x8CA6: GL_READ_FRAMEBUFFER_BINDING and, in OpenGL ES 2, GL_FRAMEBUFFER_BINDING; 0x0C02: GL_READ_BUFFER. */
    GLint framebuffer = state(is_es2 ? 0x8CA6 : 0x8CAA), pack = is_es2 ? 0 : state(0x88ED);
    for (int at = 0; at < known; at++) before[at] = state(packs[at]);
    GLenum target = is_es2 ? 0x8D40 : 0x8CA8;
    if (framebuffer) gl_bind_framebuffer(target, 0);
    GLint buffer = context->window_buffer ? state(0x0C02) : 0;
    if (buffer) gl_read_buffer(context->window_buffer);
    if (pack) gl_bind_buffer(0x88EB, 0);
    for (int at = 0; at < known; at++) gl_pixel_store(packs[at], plain[at]);
    uint8_t *pixels = grown(NULL, (size_t)width * (size_t)height * 4);
    memset(pixels, 0, (size_t)width * (size_t)height * 4);
    gl_read_pixels(0, 0, width, height, 0x1908, 0x1401, pixels);
    for (int at = 0; at < known; at++) gl_pixel_store(packs[at], before[at]);
    if (pack) gl_bind_buffer(0x88EB, (GLuint)pack);
    if (buffer) gl_read_buffer((GLenum)buffer);
    if (framebuffer) gl_bind_framebuffer(target, (GLuint)framebuffer);
    clear_errors();

    size_t room = strlen(snapshots) + 32;
    char *path = grown(NULL, room);
    snprintf(path, room, "%s%010llu.ppm", snapshots, (unsigned long long)call);
    FILE *file = fopen(path, "wb");
    if (file == NULL) fail("a snapshot cannot be written");
    fprintf(file, "P6\n%d %d\n255\n", width, height);
    for (int y = height; y-- > 0;)
        for (int x = 0; x < width; x++) fwrite(pixels + ((size_t)y * (size_t)width + (size_t)x) * 4, 1, 3, file);
    if (fclose(file) != 0) fail("a snapshot cannot be written");
    free(path);
    free(pixels);
}

void frame_end(uint64_t call)
{
    frames++;
    if (current < 0) return;
    if (snapshots) snapshot(call);
    gl_flush();
}

int main(int count, char **words)
{
    if (count == 3 && strcmp(words[1], "--snapshots") == 0) {
        snapshots = words[2];
    } else if (count != 1) {
        fprintf(stderr, "usage: %s [--snapshots PREFIX]\n", words[0]);
        return 2;
    }
    open_data(words[0]);
    open_display();
    load_functions();
    replay();
    if (current >= 0) gl_flush();
    printf("%llu frames\n", (unsigned long long)frames);
    return 0;
}
