//! What can be chosen and what is in force: models, tools, settings.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use protocol::api::{ModelListed, ToolListed};
use protocol::method;

use super::House;
use crate::rpc::register::method;

pub(super) fn register(module: &mut RpcModule<House>) -> Result<(), RegisterMethodError> {
    method::<method::ModelList, _, _>(module, async |house: Arc<House>, _, _| {
        Ok(ModelListed { models: house.env.list_models() })
    })?;
    method::<method::ToolList, _, _>(module, async |house: Arc<House>, _, _| {
        Ok(ToolListed { tools: house.env.tools()? })
    })?;
    method::<method::ConfigExplain, _, _>(module, async |house: Arc<House>, _, wanted| {
        house.env.explain(wanted.key.as_deref(), wanted.cwd.as_deref())
    })
}
