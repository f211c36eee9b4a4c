"""Arrays of any library, on any device, and rows that lie elsewhere: the floor of everything.

No other package asks which library holds X; torch is imported here, in features and in export.
"""

from skdare.arrays.blas_threads import threads_for as threads_for
from skdare.arrays.libraries import SMALLEST_SPREAD as SMALLEST_SPREAD
from skdare.arrays.libraries import Array as Array
from skdare.arrays.libraries import as_float64 as as_float64
from skdare.arrays.libraries import empty as empty
from skdare.arrays.libraries import float64 as float64
from skdare.arrays.libraries import identity as identity
from skdare.arrays.libraries import in_background as in_background
from skdare.arrays.libraries import is_cuda as is_cuda
from skdare.arrays.libraries import is_cuda_float32 as is_cuda_float32
from skdare.arrays.libraries import is_floating as is_floating
from skdare.arrays.libraries import is_foreign as is_foreign
from skdare.arrays.libraries import is_real as is_real
from skdare.arrays.libraries import is_sparse as is_sparse
from skdare.arrays.libraries import largest_feature as largest_feature
from skdare.arrays.libraries import largest_offset as largest_offset
from skdare.arrays.libraries import like as like
from skdare.arrays.libraries import namespace as namespace
from skdare.arrays.libraries import on_accelerator as on_accelerator
from skdare.arrays.libraries import power_of_two_near as power_of_two_near
from skdare.arrays.libraries import products_of as products_of
from skdare.arrays.libraries import rounding_unit as rounding_unit
from skdare.arrays.libraries import same_place as same_place
from skdare.arrays.libraries import smallest_spread as smallest_spread
from skdare.arrays.libraries import to_numpy as to_numpy
from skdare.arrays.libraries import work_dtype as work_dtype
from skdare.arrays.products import affine as affine
from skdare.arrays.products import dot as dot
from skdare.arrays.products import entries as entries
from skdare.arrays.products import gram as gram
from skdare.arrays.products import indicators as indicators
from skdare.arrays.products import largest as largest
from skdare.arrays.products import product as product
from skdare.arrays.products import subtract_at as subtract_at
from skdare.arrays.products import symmetric_eigen as symmetric_eigen
from skdare.arrays.products import transposed_product as transposed_product
from skdare.arrays.readers import BlockReader as BlockReader
from skdare.arrays.readers import Index as Index
from skdare.arrays.readers import RowReader as RowReader
from skdare.arrays.rows import chunk_rows as chunk_rows
from skdare.arrays.rows import chunks as chunks
from skdare.arrays.rows import column_reach as column_reach
from skdare.arrays.rows import compact as compact
from skdare.arrays.rows import dense_rows as dense_rows
from skdare.arrays.rows import evenly_spread as evenly_spread
from skdare.arrays.rows import is_within as is_within
from skdare.arrays.rows import length as length
from skdare.arrays.rows import take as take
from skdare.arrays.tensors import load_tensors as load_tensors
from skdare.arrays.tensors import on_device as on_device
from skdare.arrays.tensors import save_tensors as save_tensors
