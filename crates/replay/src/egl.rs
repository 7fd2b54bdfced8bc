//! EGL: a display without a window system, contexts, and drawables that nobody sees.
#![allow(unsafe_code, reason = "EGL is found at run time")]

use std::ffi::{CStr, c_char, c_void};
use std::io;

use anytrace_apitrace::tools::program::Asked;
use anytrace_core::Error;
use khronos_egl as egl;

use crate::Nothing;
use crate::invoke::Function;

type Library = egl::DynamicInstance<egl::EGL1_4>;

/// `EGL_PLATFORM_SURFACELESS_MESA`.
const SURFACELESS: u32 = 0x31dd;
/// `EGL_PLATFORM_DEVICE_EXT`.
const DEVICE: u32 = 0x313f;
/// `EGL_CONTEXT_OPENGL_PROFILE_MASK`.
const PROFILE: i32 = 0x30fd;
/// Most devices that are listed.
const DEVICES_MAX: usize = 64;

/// Versions of the core profile that are tried where the driver has not the one that was asked for.
const VERSIONS: [(u32, u32); 5] = [(4, 5), (4, 3), (4, 1), (3, 3), (3, 2)];

/// What is drawn on.
pub(crate) enum Screen {
    /// The system's EGL.
    System(Box<System>),
    /// A driver that draws nothing.
    Nothing,
}

impl Screen {
    /// Opens the display of a device, or the first that works of those that need no window system; or nothing.
    pub(crate) fn open(device: Option<usize>, samples: u32, nothing: Option<Nothing>) -> Result<Self, Error> {
        match nothing {
            Some(how) => {
                crate::null::begin(how);
                Ok(Self::Nothing)
            }
            None => System::open(device, samples).map(|system| Self::System(Box::new(system))),
        }
    }

    /// A function of OpenGL.
    pub(crate) fn function(&self, name: &str) -> Option<Function> {
        match self {
            Self::System(system) => system.function(name),
            Self::Nothing => crate::null::function(name),
        }
    }

    /// Makes a context, of another version where the driver has not the one asked for; then the note says so.
    pub(crate) fn context(
        &mut self,
        asked: &Asked,
        share: Option<egl::Context>,
    ) -> Result<(egl::Context, Option<String>), Error> {
        match self {
            Self::System(system) => system.context(asked, share),
            // SAFETY: nobody gives it to EGL.
            Self::Nothing => Ok((unsafe { egl::Context::from_ptr(std::ptr::dangling_mut()) }, None)),
        }
    }

    pub(crate) fn destroy(&self, context: egl::Context) {
        if let Self::System(system) = self {
            system.destroy(context);
        }
    }

    pub(crate) fn surface(&mut self, is_es: bool, size: (u32, u32)) -> Result<egl::Surface, Error> {
        match self {
            Self::System(system) => system.surface(is_es, size),
            // SAFETY: as above.
            Self::Nothing => Ok(unsafe { egl::Surface::from_ptr(std::ptr::dangling_mut()) }),
        }
    }

    pub(crate) fn make_current(&self, is_es: bool, context: egl::Context, to: egl::Surface) -> Result<(), Error> {
        match self {
            Self::System(system) => system.make_current(is_es, context, to),
            Self::Nothing => Ok(()),
        }
    }

    /// No context is current.
    pub(crate) fn release(&self) {
        if let Self::System(system) = self {
            system.release();
        }
    }
}

/// The display and its library.
pub(crate) struct System {
    library: Library,
    display: egl::Display,
    /// For OpenGL and for OpenGL ES.
    configs: [Option<egl::Config>; 2],
    /// Samples a pixel of drawables; 0 and 1: one.
    samples: u32,
}

fn failed(doing: &str, error: impl std::fmt::Display) -> Error {
    Error::io("EGL", io::Error::other(format!("{doing}: {error}")))
}

fn load() -> Result<Library, Error> {
    // SAFETY: loading runs the initializers of a library of this name, which is the system's EGL.
    unsafe { Library::load_required() }.map_err(|error| {
        let hint = if cfg!(target_feature = "crt-static") {
            "this program is linked statically and loads no drivers: install one that is not (cargo install anytrace)"
        } else {
            "replay needs EGL and OpenGL (on Debian: apt-get install libegl1 libgl1-mesa-dri)"
        };
        Error::unsupported(format!("libEGL.so.1 cannot be loaded: {hint}: {error}"))
    })
}

type GetPlatformDisplay = unsafe extern "system" fn(u32, *mut c_void, *const i32) -> egl::EGLDisplay;
type QueryDevices = unsafe extern "system" fn(i32, *mut *mut c_void, *mut i32) -> u32;
type QueryDeviceString = unsafe extern "system" fn(*mut c_void, i32) -> *const c_char;

/// A display of a platform.
fn of_platform(library: &Library, platform: u32, native: *mut c_void) -> Option<egl::Display> {
    let found = library.get_proc_address("eglGetPlatformDisplayEXT")?;
    // SAFETY: the function of this name has this type (EGL_EXT_platform_base); null attributes are allowed.
    let display = unsafe {
        std::mem::transmute::<extern "system" fn(), GetPlatformDisplay>(found)(platform, native, std::ptr::null())
    };
    // SAFETY: it comes from EGL.
    (!display.is_null()).then(|| unsafe { egl::Display::from_ptr(display) })
}

/// Handles of the devices (EGL_EXT_device_enumeration).
fn handles(library: &Library) -> Vec<*mut c_void> {
    let Some(found) = library.get_proc_address("eglQueryDevicesEXT") else { return Vec::new() };
    let mut handles = [std::ptr::null_mut(); DEVICES_MAX];
    let mut count = 0;
    // SAFETY: the function of this name has this type; the array has as many places as it is told.
    let is_fine = unsafe {
        let query = std::mem::transmute::<extern "system" fn(), QueryDevices>(found);
        query(DEVICES_MAX as i32, handles.as_mut_ptr(), &raw mut count)
    };
    let count = if is_fine == 0 { 0 } else { usize::try_from(count).unwrap_or(0) };
    handles.into_iter().take(count).collect()
}

/// The devices on which a trace can be replayed: their files, or what EGL says of them.
///
/// # Errors
/// EGL is absent.
pub fn devices() -> Result<Vec<String>, Error> {
    let library = load()?;
    let describe = |handle: &*mut c_void| {
        let found = library.get_proc_address("eglQueryDeviceStringEXT")?;
        // EGL_DRM_DEVICE_FILE_EXT, EGL_EXTENSIONS.
        [0x3233, 0x3055].into_iter().find_map(|name| {
            // SAFETY: the function of this name has this type; the string is the library's, and ends with null.
            unsafe {
                let text = std::mem::transmute::<extern "system" fn(), QueryDeviceString>(found)(*handle, name);
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        })
    };
    Ok(handles(&library).iter().map(|handle| describe(handle).unwrap_or_default()).collect())
}

impl System {
    /// Opens the display of a device, or the first that works of those that need no window system.
    fn open(device: Option<usize>, samples: u32) -> Result<Self, Error> {
        let library = load()?;
        let display = match device {
            Some(number) => {
                let handles = handles(&library);
                let Some(handle) = handles.get(number) else {
                    let count = handles.len();
                    return Err(Error::usage(format!("--device {number}: EGL lists {count}; see --list-devices")));
                };
                let display =
                    of_platform(&library, DEVICE, *handle).ok_or_else(|| failed("the device", "no display"))?;
                library.initialize(display).map_err(|error| failed("the device", error))?;
                display
            }
            None => {
                let surfaceless = of_platform(&library, SURFACELESS, std::ptr::null_mut());
                match surfaceless.filter(|display| library.initialize(*display).is_ok()) {
                    Some(display) => display,
                    None => {
                        // SAFETY: the default display takes no handle.
                        let display = unsafe { library.get_display(egl::DEFAULT_DISPLAY) };
                        let display = display.ok_or_else(|| failed("the default display", "there is none"))?;
                        library.initialize(display).map_err(|error| failed("the default display", error))?;
                        display
                    }
                }
            }
        };
        Ok(Self { library, display, configs: [None; 2], samples })
    }

    /// A function of OpenGL.
    fn function(&self, name: &str) -> Option<Function> {
        Function::new(self.library.get_proc_address(name)? as *const () as usize)
    }

    fn config(&mut self, is_es: bool) -> Result<egl::Config, Error> {
        let place = usize::from(is_es);
        if let Some(Some(config)) = self.configs.get(place) {
            return Ok(*config);
        }
        let kind = if is_es { egl::OPENGL_ES2_BIT } else { egl::OPENGL_BIT };
        let wanted = [
            egl::SURFACE_TYPE,
            egl::PBUFFER_BIT,
            egl::RENDERABLE_TYPE,
            kind,
            egl::RED_SIZE,
            8,
            egl::GREEN_SIZE,
            8,
            egl::BLUE_SIZE,
            8,
            egl::ALPHA_SIZE,
            8,
            egl::DEPTH_SIZE,
            24,
            egl::STENCIL_SIZE,
            8,
            egl::SAMPLE_BUFFERS,
            i32::from(self.samples > 1),
            egl::SAMPLES,
            if self.samples > 1 { self.samples as i32 } else { 0 },
            egl::NONE,
        ];
        let found = self.library.choose_first_config(self.display, &wanted);
        let config = found.map_err(|error| failed("a configuration", error))?;
        let config = config.ok_or_else(|| {
            let samples = self.samples.max(1);
            failed("a configuration", format!("none has 8 bits a color, depth and stencil with samples: {samples}"))
        })?;
        if let Some(place) = self.configs.get_mut(place) {
            *place = Some(config);
        }
        Ok(config)
    }

    fn bind(&self, is_es: bool) -> Result<(), Error> {
        let api = if is_es { egl::OPENGL_ES_API } else { egl::OPENGL_API };
        self.library.bind_api(api).map_err(|error| failed("the interface", error))
    }

    /// Makes a context, of another version where the driver has not the one asked for; then the note says so.
    fn context(&mut self, asked: &Asked, share: Option<egl::Context>) -> Result<(egl::Context, Option<String>), Error> {
        self.bind(asked.is_es)?;
        let config = self.config(asked.is_es)?;
        let make = |version: (u32, u32)| {
            let mut wanted = Vec::new();
            if version.0 > 0 {
                wanted.extend([egl::CONTEXT_MAJOR_VERSION, version.0 as i32]);
                wanted.extend([egl::CONTEXT_MINOR_VERSION, version.1 as i32]);
            }
            if asked.profile > 0 && !asked.is_es {
                wanted.extend([PROFILE, asked.profile as i32]);
            }
            wanted.push(egl::NONE);
            self.library.create_context(self.display, config, share, &wanted)
        };
        let error = match make(asked.version) {
            Ok(context) => return Ok((context, None)),
            Err(error) => error,
        };
        let others: &[(u32, u32)] = match asked {
            Asked { is_es: true, .. } => &[(3, 0), (2, 0)],
            Asked { profile: 1, .. } => &VERSIONS,
            _ => &[(0, 0)],
        };
        let found = others.iter().find_map(|version| Some((*version, make(*version).ok()?)));
        let (major, minor) = asked.version;
        let ((now_major, now_minor), context) =
            found.ok_or_else(|| failed(&format!("a context of version {major}.{minor}"), error))?;
        let now = if now_major == 0 { "the driver's own".to_owned() } else { format!("{now_major}.{now_minor}") };
        Ok((context, Some(format!("no context of version {major}.{minor} ({error}): made one of version {now}"))))
    }

    fn destroy(&self, context: egl::Context) {
        // That it cannot be destroyed changes no picture.
        let _ = self.library.destroy_context(self.display, context);
    }

    fn surface(&mut self, is_es: bool, (width, height): (u32, u32)) -> Result<egl::Surface, Error> {
        let config = self.config(is_es)?;
        let size = [egl::WIDTH, width as i32, egl::HEIGHT, height as i32, egl::NONE];
        let made = self.library.create_pbuffer_surface(self.display, config, &size);
        made.map_err(|error| failed(&format!("a drawable of {width}x{height} pixels"), error))
    }

    fn make_current(&self, is_es: bool, context: egl::Context, to: egl::Surface) -> Result<(), Error> {
        self.bind(is_es)?;
        let made = self.library.make_current(self.display, Some(to), Some(to), Some(context));
        made.map_err(|error| failed("to make a context current", error))
    }

    /// No context is current.
    fn release(&self) {
        let _ = self.library.make_current(self.display, None, None, None);
    }
}
