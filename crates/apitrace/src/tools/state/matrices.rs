//! The matrices of the fixed pipeline.

/// Deeper stacks do not exist; beyond it the top is only replaced.
const DEPTH_MAX: usize = 64;

/// A matrix by columns, as OpenGL has it.
pub type Matrix = [f64; 16];

const IDENTITY: Matrix = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];

/// What a function does to the top of the current stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum MatrixOp {
    Identity,
    Load,
    LoadTranspose,
    Multiply,
    MultiplyTranspose,
    Translate,
    Rotate,
    Scale,
    Ortho,
    Frustum,
    Push,
    Pop,
}

/// What a function does, by its name.
pub(super) fn matrix_op(name: &str) -> Option<MatrixOp> {
    Some(match name {
        "glLoadIdentity" => MatrixOp::Identity,
        "glLoadMatrixf" | "glLoadMatrixd" => MatrixOp::Load,
        "glLoadTransposeMatrixf" | "glLoadTransposeMatrixd" => MatrixOp::LoadTranspose,
        "glMultMatrixf" | "glMultMatrixd" => MatrixOp::Multiply,
        "glMultTransposeMatrixf" | "glMultTransposeMatrixd" => MatrixOp::MultiplyTranspose,
        "glTranslatef" | "glTranslated" => MatrixOp::Translate,
        "glRotatef" | "glRotated" => MatrixOp::Rotate,
        "glScalef" | "glScaled" => MatrixOp::Scale,
        "glOrtho" | "glOrthof" => MatrixOp::Ortho,
        "glFrustum" | "glFrustumf" => MatrixOp::Frustum,
        "glPushMatrix" => MatrixOp::Push,
        "glPopMatrix" => MatrixOp::Pop,
        _ => return None,
    })
}

/// A stack of matrices and the call that changed its top last.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    below: Vec<Matrix>,
    /// The top.
    pub top: Matrix,
    /// The call that changed it last.
    pub call: u64,
}

impl Default for Stack {
    fn default() -> Self {
        Self { below: Vec::new(), top: IDENTITY, call: 0 }
    }
}

impl Stack {
    /// How many matrices there are.
    pub fn depth(&self) -> usize {
        self.below.len() + 1
    }

    /// Follows a call. Returns false, without effect, if it has too few numbers.
    pub(super) fn apply(&mut self, op: MatrixOp, numbers: &[f64], call: u64) -> bool {
        let matrix = || <Matrix>::try_from(numbers).ok();
        let factor = match (op, numbers) {
            (MatrixOp::Push, _) => {
                if self.below.len() < DEPTH_MAX {
                    self.below.push(self.top);
                }
                return true;
            }
            (MatrixOp::Pop, _) => {
                if let Some(top) = self.below.pop() {
                    (self.top, self.call) = (top, call);
                }
                return true;
            }
            (MatrixOp::Identity, _) => Some(IDENTITY),
            (MatrixOp::Load | MatrixOp::Multiply, _) => matrix(),
            (MatrixOp::LoadTranspose | MatrixOp::MultiplyTranspose, _) => matrix().map(|matrix| transpose(&matrix)),
            (MatrixOp::Translate, &[x, y, z]) => {
                Some([1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, x, y, z, 1.0])
            }
            (MatrixOp::Scale, &[x, y, z]) => {
                Some([x, 0.0, 0.0, 0.0, 0.0, y, 0.0, 0.0, 0.0, 0.0, z, 0.0, 0.0, 0.0, 0.0, 1.0])
            }
            (MatrixOp::Rotate, &[angle, x, y, z]) => Some(rotation(angle, [x, y, z])),
            (MatrixOp::Ortho, &[l, r, b, t, n, f]) => Some([
                2.0 / (r - l),
                0.0,
                0.0,
                0.0,
                0.0,
                2.0 / (t - b),
                0.0,
                0.0,
                0.0,
                0.0,
                -2.0 / (f - n),
                0.0,
                -(r + l) / (r - l),
                -(t + b) / (t - b),
                -(f + n) / (f - n),
                1.0,
            ]),
            (MatrixOp::Frustum, &[l, r, b, t, n, f]) => Some([
                2.0 * n / (r - l),
                0.0,
                0.0,
                0.0,
                0.0,
                2.0 * n / (t - b),
                0.0,
                0.0,
                (r + l) / (r - l),
                (t + b) / (t - b),
                -(f + n) / (f - n),
                -1.0,
                0.0,
                0.0,
                -2.0 * f * n / (f - n),
                0.0,
            ]),
            _ => None,
        };
        let Some(factor) = factor else { return false };
        let replaces = matches!(op, MatrixOp::Identity | MatrixOp::Load | MatrixOp::LoadTranspose);
        self.top = if replaces { factor } else { product(&self.top, &factor) };
        self.call = call;
        true
    }
}

fn at(matrix: &Matrix, column: usize, row: usize) -> f64 {
    matrix.get(column * 4 + row).copied().unwrap_or(0.0)
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|place| (0..4).map(|k| at(a, k, place % 4) * at(b, place / 4, k)).sum())
}

fn transpose(matrix: &Matrix) -> Matrix {
    std::array::from_fn(|place| at(matrix, place % 4, place / 4))
}

fn rotation(degrees: f64, axis: [f64; 3]) -> Matrix {
    let length = axis.iter().map(|part| part * part).sum::<f64>().sqrt();
    let [x, y, z] = axis.map(|part| if length == 0.0 { 0.0 } else { part / length });
    let (s, c) = degrees.to_radians().sin_cos();
    let d = 1.0 - c;
    [
        x * x * d + c,
        y * x * d + z * s,
        x * z * d - y * s,
        0.0,
        x * y * d - z * s,
        y * y * d + c,
        y * z * d + x * s,
        0.0,
        x * z * d + y * s,
        y * z * d - x * s,
        z * z * d + c,
        0.0,
        0.0,
        0.0,
        0.0,
        1.0,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_multiply_from_the_right_and_stacks_give_back() {
        let mut stack = Stack::default();
        stack.apply(MatrixOp::Translate, &[1.0, 2.0, 3.0], 5);
        stack.apply(MatrixOp::Push, &[], 6);
        stack.apply(MatrixOp::Rotate, &[90.0, 0.0, 0.0, 2.0], 7);
        stack.apply(MatrixOp::Scale, &[2.0, 2.0, 2.0], 8);
        // A point (1, 0, 0) is scaled, turned to y and moved.
        let point: Vec<f64> = (0..4).map(|row| at(&stack.top, 0, row) + at(&stack.top, 3, row)).collect();
        assert!(point.iter().zip([1.0, 4.0, 3.0, 1.0]).all(|(a, b)| (a - b).abs() < 1e-12), "{point:?}");
        assert_eq!((stack.depth(), stack.call), (2, 8));
        stack.apply(MatrixOp::Pop, &[], 9);
        assert_eq!((at(&stack.top, 3, 1), stack.depth()), (2.0, 1));
        assert!(!stack.apply(MatrixOp::Load, &[1.0], 10));
    }

    #[test]
    fn projections_map_their_box_to_the_unit_box() {
        let mut stack = Stack::default();
        stack.apply(MatrixOp::Ortho, &[-2.0, 2.0, -1.0, 3.0, 0.0, 10.0], 1);
        let x = at(&stack.top, 0, 0) * 2.0 + at(&stack.top, 3, 0);
        let y = at(&stack.top, 3, 1) - at(&stack.top, 1, 1);
        let z = at(&stack.top, 2, 2) * -10.0 + at(&stack.top, 3, 2);
        assert_eq!((x, y, z), (1.0, -1.0, 1.0));
        assert_eq!(transpose(&transpose(&stack.top)), stack.top);
    }
}
