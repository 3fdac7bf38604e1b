//! Tensors: what goes in and comes out.
use std::marker::PhantomData;

use etude_sys as sys;

use crate::error::{text, Error, Result, Status};

/// Type of a tensor's elements; the codes are those of ExecuTorch's (and PyTorch's) ScalarType.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScalarType(pub i8);

#[allow(missing_docs)]
impl ScalarType {
    pub const UINT8: ScalarType = ScalarType(0);
    pub const INT8: ScalarType = ScalarType(1);
    pub const INT16: ScalarType = ScalarType(2);
    pub const INT32: ScalarType = ScalarType(3);
    pub const INT64: ScalarType = ScalarType(4);
    pub const FLOAT16: ScalarType = ScalarType(5);
    pub const FLOAT32: ScalarType = ScalarType(6);
    pub const FLOAT64: ScalarType = ScalarType(7);
    pub const BOOL: ScalarType = ScalarType(11);
    pub const BFLOAT16: ScalarType = ScalarType(15);
    pub const UINT16: ScalarType = ScalarType(27);
    pub const UINT32: ScalarType = ScalarType(28);
    pub const UINT64: ScalarType = ScalarType(29);
}

impl ScalarType {
    /// ExecuTorch's name: "float", "long", …
    pub fn name(self) -> &'static str {
        unsafe { text(sys::etude_scalar_name(self.0.into())) }
    }

    /// Bytes of an element; 0 for a code that is none.
    pub fn size(self) -> usize {
        unsafe { sys::etude_scalar_size(self.0.into()) }
    }
}

impl std::fmt::Debug for ScalarType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is an element of tensors.
pub trait Element: Copy + sealed::Sealed + 'static {
    /// Its code.
    const SCALAR_TYPE: ScalarType;
}

macro_rules! element {
    ($($rust:ty => $code:ident),*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const SCALAR_TYPE: ScalarType = ScalarType::$code;
        }
    )*};
}
// bool is not one: a byte of a program may be neither 0 nor 1. Read BOOL as `bytes`.
element!(u8 => UINT8, i8 => INT8, i16 => INT16, i32 => INT32, i64 => INT64, f32 => FLOAT32, f64 => FLOAT64,
         u16 => UINT16, u32 => UINT32, u64 => UINT64);

/// A tensor to hand over: elements of the caller's, in row-major order unless `dim_order` says otherwise.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    pub(crate) scalar_type: ScalarType,
    pub(crate) bytes: &'a [u8],
    pub(crate) sizes: Vec<i32>,
    pub(crate) dim_order: Vec<u8>,
    /// The sizes as they were given, where one does not fit 31 bits: `check` refuses them.
    too_large: Option<Vec<usize>>,
}

impl<'a> Tensor<'a> {
    /// Over `elements`, as many as `sizes` say.
    pub fn new<T: Element>(elements: &'a [T], sizes: &[usize]) -> Tensor<'a> {
        let bytes = unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), std::mem::size_of_val(elements)) };
        Tensor::from_bytes(T::SCALAR_TYPE, bytes, sizes)
    }

    /// Of any element type, over its bytes.
    pub fn from_bytes(scalar_type: ScalarType, bytes: &'a [u8], sizes: &[usize]) -> Tensor<'a> {
        let fitting: std::result::Result<Vec<i32>, _> = sizes.iter().map(|&size| i32::try_from(size)).collect();
        let too_large = fitting.is_err().then(|| sizes.to_vec());
        Tensor { scalar_type, bytes, sizes: fitting.unwrap_or_default(), dim_order: Vec::new(), too_large }
    }

    /// With its dimensions in another order in memory, outermost first: `[0, 2, 3, 1]` is channels-last.
    pub fn with_dim_order(mut self, dim_order: &[u8]) -> Tensor<'a> {
        self.dim_order = dim_order.to_vec();
        self
    }

    /// Has it as many elements as its sizes say?
    pub(crate) fn check(&self, index: usize) -> Result<()> {
        let wrong = |message: String| Err(Error::new(Status::InvalidArgument, format!("input {index}: {message}")));
        if self.sizes.len() > sys::MAX_RANK {
            return wrong(format!("a tensor has at most {} dimensions", sys::MAX_RANK));
        }
        if let Some(sizes) = &self.too_large {
            return wrong(format!("a tensor can't have the sizes {sizes:?}"));
        }
        let mut named = self.dim_order.clone();
        named.sort_unstable();
        if !named.is_empty() && !named.iter().map(|&dim| usize::from(dim)).eq(0..self.sizes.len()) {
            let order = &self.dim_order;
            return wrong(format!("the dim order {order:?} is invalid: it does not name each dimension once"));
        }
        let want = self.sizes.iter().try_fold(self.scalar_type.size(), |product, &size| {
            product.checked_mul(usize::try_from(size).ok()?)
        });
        if want != Some(self.bytes.len()) {
            return wrong(format!(
                "{} bytes of elements do not fill a tensor of sizes {:?} of {}",
                self.bytes.len(),
                self.sizes,
                self.scalar_type.name()
            ));
        }
        Ok(())
    }
}

/// A tensor that belongs to a method or to a backend's call.
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    pub(crate) tensor: *const sys::etude_tensor,
    life: PhantomData<&'a [u8]>,
}

impl<'a> TensorView<'a> {
    pub(crate) unsafe fn new(tensor: *const sys::etude_tensor) -> TensorView<'a> {
        TensorView { tensor, life: PhantomData }
    }

    fn c(&self) -> &'a sys::etude_tensor {
        unsafe { &*self.tensor }
    }

    fn dimensions<T>(&self, pointer: *const T) -> &'a [T] {
        match self.rank() {
            0 => &[],
            rank => unsafe { std::slice::from_raw_parts(pointer, rank) },
        }
    }

    /// Type of its elements.
    pub fn scalar_type(&self) -> ScalarType {
        ScalarType(self.c().scalar_type)
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.c().rank.into()
    }

    /// Size of each dimension.
    pub fn sizes(&self) -> &'a [i32] {
        self.dimensions(self.c().sizes)
    }

    /// Stride of each dimension, in elements.
    pub fn strides(&self) -> &'a [i32] {
        self.dimensions(self.c().strides)
    }

    /// Dimensions as they lie in memory, outermost first.
    pub fn dim_order(&self) -> Vec<u8> {
        match self.c().dim_order.is_null() {
            true => (0..self.c().rank).collect(),
            false => self.dimensions(self.c().dim_order).to_vec(),
        }
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        unsafe { sys::etude_tensor_numel(self.tensor) }
    }

    /// Do the elements stand in row-major order? If not (channels-last), [`TensorView::to_vec`] puts them so.
    pub fn is_contiguous(&self) -> bool {
        unsafe { sys::etude_tensor_is_contiguous(self.tensor) }
    }

    /// The bytes of its elements, as they lie in memory.
    pub fn bytes(&self) -> &'a [u8] {
        match unsafe { sys::etude_tensor_nbytes(self.tensor) } {
            0 => &[],
            size => unsafe { std::slice::from_raw_parts(self.c().data.cast(), size) },
        }
    }

    /// The elements, as they lie in memory. [`Status::InvalidType`] where they are none of `T`.
    pub fn data<T: Element>(&self) -> Result<&'a [T]> {
        if T::SCALAR_TYPE != self.scalar_type() {
            let message = format!("the tensor holds {:?}, not {:?}", self.scalar_type(), T::SCALAR_TYPE);
            return Err(Error::new(Status::InvalidType, message));
        }
        let bytes = self.bytes();
        if bytes.is_empty() {
            return Ok(&[]);
        }
        if bytes.as_ptr() as usize % std::mem::align_of::<T>() != 0 {
            return Err(Error::new(Status::NotSupported, "the tensor is not aligned for its elements: read its bytes"));
        }
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), self.numel()) })
    }

    /// A copy of the elements in row-major order.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let data = self.data::<T>()?;
        if self.is_contiguous() {
            return Ok(data.to_vec());
        }
        let (sizes, strides) = (self.sizes(), self.strides());
        let mut at = vec![0i32; self.rank()];
        Ok((0..data.len())
            .map(|_| {
                let place: i32 = at.iter().zip(strides).map(|(i, stride)| i * stride).sum();
                for k in (0..at.len()).rev() {
                    at[k] += 1;
                    if at[k] < sizes[k] {
                        break;
                    }
                    at[k] = 0;
                }
                data[place as usize]
            })
            .collect())
    }
}

impl std::fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.scalar_type(), self.sizes())
    }
}
